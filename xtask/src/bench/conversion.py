import struct, sys
record = struct.Struct('<IqqQ')
with open(sys.argv[1], 'rb') as file, open('/dev/null', 'w') as out:
    while block := file.read(record.size * 65536):
        out.writelines(f'{cpu};{s}.{ns:09};{latency}\n' for cpu, s, ns, latency in record.iter_unpack(block))
