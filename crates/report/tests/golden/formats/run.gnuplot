# How late can this machine be?
#   source: runs/x
#   punctual 0.1.0 · board7 · 2 x Cortex-A53 · Linux 6.1.0-21-rt-arm64 (PREEMPT_VOLUNTARY) · no hypervisor seen; 4 cells x 4 blocks of 2 s, every 1 ms (clock_nanosleep), CPUs 0-1, 32 s measured
#   date: 2026-09-21T14:13:20Z
# Window: gnuplot -persist FILE
# Picture: gnuplot -e "set terminal pdfcairo size 12cm,8cm; set output 'plot.pdf'" FILE
# Linear axis: append unset logscale x; replot
# Data: latency (us), share of samples that are later.
$curve0 << EOD
53.248 1
57.344 5.82e-1
61.44 6.95e-2
65.536 1.8e-2
73.728 1.6e-2
81.92 1.3e-2
90.112 1.1e-2
98.304 9e-3
106.496 7e-3
114.688 5e-3
122.88 3e-3
131.072 1e-3
147.456 1e-3
EOD
$curve1 << EOD
1.92 1
2.048 9.8725e-1
2.304 9.2375e-1
2.56 8.5925e-1
2.816 7.9575e-1
3.072 7.315e-1
3.328 6.6825e-1
3.584 6.0375e-1
3.84 5.395e-1
4.096 4.76e-1
4.608 3.4825e-1
5.12 2.195e-1
5.632 9.1e-2
6.144 1.8e-2
8.192 1.7e-2
10.24 1.6e-2
12.288 1.5e-2
14.336 1.4e-2
16.384 1.3e-2
18.432 1.2e-2
20.48 1.1e-2
22.528 1e-2
24.576 9e-3
26.624 8e-3
28.672 7e-3
30.72 6e-3
32.768 5e-3
36.864 3e-3
40.96 1e-3
45.056 1e-3
EOD
$curve2 << EOD
163.84 1
180.224 9.989767858284837e-1
196.608 9.341945385943595e-1
212.992 8.697320457888342e-1
229.376 8.059730127262262e-1
245.76 7.414465690349812e-1
262.144 6.778793886295326e-1
294.912 5.492741574470806e-1
327.68 4.1990151563599154e-1
360.448 2.953891411396048e-1
393.216 1.6915009272878428e-1
425.984 5.4678007290400975e-2
458.752 1.8481805973012726e-2
589.824 1.745859180149645e-2
720.896 1.6435377629980177e-2
851.968 1.54121634584639e-2
983.04 1.4388949286947623e-2
1179.648 1.3365735115431349e-2
1310.72 1.2342520943915074e-2
1441.792 1.1319306772398797e-2
1572.864 1.0296092600882522e-2
1703.936 9.272878429366247e-3
1835.008 8.24966425784997e-3
1966.08 7.226450086333696e-3
2097.152 6.20323591481742e-3
2359.296 4.156807571784869e-3
2621.44 2.110379228752318e-3
2883.584 6.395088571976722e-5
46137.344 6.395088571976722e-5
EOD
$curve3 << EOD
2.816 1
3.072 9.8725e-1
3.328 9.4425e-1
3.584 9.0175e-1
3.84 8.5925e-1
4.096 8.1675e-1
4.608 7.315e-1
5.12 6.4625e-1
5.632 5.6125e-1
6.144 4.76e-1
6.656 3.91e-1
7.168 3.055e-1
7.68 2.195e-1
8.192 1.34e-1
9.216 1.8e-2
12.288 1.7e-2
15.36 1.6e-2
18.432 1.5e-2
22.528 1.4e-2
24.576 1.3e-2
28.672 1.2e-2
30.72 1.1e-2
36.864 9e-3
40.96 8e-3
45.056 6e-3
49.152 5e-3
53.248 4e-3
57.344 2e-3
61.44 1e-3
65.536 1e-3
EOD
set encoding utf8
set title 'How late can this machine be?' noenhanced
set xlabel 'latency (us)' noenhanced
set ylabel 'share of wake-ups later' noenhanced
set yrange [*:1]
set logscale xy
set rmargin 6
set format xy '10^{%L}'
set grid
set key top right noenhanced
plot $curve0 using 1:2 with steps lw 2 title 'none/other' noenhanced, \
     $curve1 using 1:2 with steps lw 2 title 'none/fifo:80' noenhanced, \
     $curve2 using 1:2 with steps lw 2 title 'messaging/other' noenhanced, \
     $curve3 using 1:2 with steps lw 2 title 'messaging/fifo:80' noenhanced
