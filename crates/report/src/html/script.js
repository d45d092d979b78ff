// Sorts and copies tables, shows the values of lines under the pointer, and turns histograms to a linear axis. The page
// is complete without it.
(() => {
'use strict';
const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
const element = (name, text, parent) => {
  const made = document.createElement(name);
  made.textContent = text;
  parent.append(made);
  return made;
};
const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, d: 86400e9, years: 31557600e9 };

// ---- sorting: all tables of cells are parts of one
const tables = $('table.matrix');
const value = (row, column) => {
  const cell = row.cells[column], isAxis = cell.tagName === 'TH';
  const [whole, number, unit] = /(-?[\d .]*\d(?:e-?\d+)?) ?([a-z]*)/.exec(cell.firstChild ? cell.firstChild.textContent : '') || [];
  // An axis is text, unless it is a time.
  if (isAxis && (whole !== cell.textContent || !UNITS[unit])) return cell.textContent;
  return number === undefined ? -Infinity : Number(number.replaceAll(' ', '')) * (UNITS[unit] || 1);
};
let sorting = 0;
const sort = (column, descending) => {
  const turn = ++sorting;
  const keyed = $('table.matrix > tbody > tr').map((row) => [value(row, column), row]);
  const numeric = keyed.every((pair) => typeof pair[0] === 'number');
  const order = numeric ? (a, b) => a[0] - b[0] || 0 : (a, b) => String(a[0]).localeCompare(String(b[0]), 'en', { numeric: true });
  keyed.sort((a, b) => (descending ? order(b, a) : order(a, b)));
  const sizes = tables.map((table) => table.tBodies[0].rows.length);
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      if (index === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
  }
  // A few tables at a time: thousands of rows would block the page.
  let table = 0, row = 0;
  const some = () => {
    if (turn !== sorting) return;
    for (const end = Math.min(table + 4, tables.length); table < end; row += sizes[table++]) {
      tables[table].tBodies[0].append(...keyed.slice(row, row + sizes[table]).map((pair) => pair[1]));
    }
    if (table < tables.length) setTimeout(some);
  };
  some();
};
for (const table of tables) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const now = head.getAttribute('aria-sort');
      sort(column, now ? now === 'ascending' : table.tBodies[0].rows[0].cells[column].tagName === 'TD');
    });
  });
}

// ---- dates in the time of the reader
const LOCAL = { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
for (const date of $('time')) {
  const at = new Date(date.dateTime);
  if (at.getTimezoneOffset() !== 0) date.append(` (${at.toLocaleString([], LOCAL)})`);
}

// ---- copying: the table of cells as Markdown, and blocks of text
const tool = (text, parent, act) => {
  const made = element('button', text, parent);
  made.type = 'button';
  made.className = 'tool';
  made.addEventListener('click', () => act(made));
};
const copy = (text, made) => {
  const area = element('textarea', text, document.body), label = made.textContent;
  area.select();
  // navigator.clipboard is missing on pages from http.
  const done = document.execCommand('copy');
  area.remove();
  made.focus();
  made.textContent = done ? 'Copied' : 'Cannot copy';
  setTimeout(() => { made.textContent = label; }, 2000);
};
const field = (cell) => {
  const small = cell.querySelector('small'), rest = small ? small.textContent : '';
  const text = cell.textContent.trim();
  return (rest ? `${text.slice(0, text.length - rest.length)} (${rest})` : text).replace(/[\\`*_|<~[\]]/g, '\\$&');
};
const markdown = () => {
  const line = (fields) => `| ${fields.join(' | ')} |\n`;
  const [head] = $('table.matrix > thead > tr');
  const ruler = [...head.cells].map((cell) => (cell.classList.contains('n') ? '--:' : '---'));
  const rows = $('table.matrix > tbody > tr').map((row) => line([...row.cells].map(field)));
  return line([...head.cells].map(field)) + line(ruler) + rows.join('');
};
if (tables.length) tool('Copy as Markdown', tables[0].closest('section').querySelector('h2'), (made) => copy(markdown(), made));
for (const text of $('pre.copy')) tool('Copy', text.previousElementSibling, (made) => copy(text.textContent, made));

// ---- links into folded parts, and pictures as files
const unfold = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let one = target; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true;
  if (target) target.scrollIntoView();
};
addEventListener('hashchange', unfold);
unfold();
const NS = 'http://www.w3.org/2000/svg';
const LOOK = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'stroke-opacity', 'opacity',
  'font-size', 'font-weight', 'font-family', 'text-anchor', 'paint-order'];
// A copy with the computed style in each element: what an element refers to takes its place.
const whole = (from) => {
  if (from.tagName === 'use') {
    const group = document.createElementNS(NS, 'g');
    group.append(whole(document.getElementById(from.getAttribute('href').slice(1))));
    return group;
  }
  const made = from.cloneNode(false), style = getComputedStyle(from);
  for (const name of ['id', 'tabindex', 'class']) made.removeAttribute(name);
  made.setAttribute('style', LOOK.map((name) => `${name}:${style.getPropertyValue(name)}`).join(';'));
  for (const child of from.childNodes) if (child.nodeType === 3) made.append(child.data); else made.append(whole(child));
  return made;
};
const standalone = (svg) => {
  const made = whole(svg), paper = getComputedStyle(document.body).backgroundColor;
  const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
  const title = svg.closest('figure').querySelector('figcaption').firstChild.data, set = svg.closest('.set');
  const keys = set && svg.matches('.plot') ? $('.key > li', set) : [];
  const add = (name, attributes, text) => {
    const one = document.createElementNS(NS, name);
    for (const key in attributes) one.setAttribute(key, attributes[key]);
    if (text) one.textContent = text;
    made.append(one);
    return one;
  };
  const all = height + 90 + 64 * keys.length, ink = getComputedStyle(document.body).color;
  made.setAttribute('viewBox', `0 -90 ${width} ${all}`);
  made.setAttribute('width', width / 2);
  made.setAttribute('height', all / 2);
  made.prepend(add('rect', { y: -90, width, height: all, fill: paper }));
  const letters = `font-size:44px;font-family:sans-serif;fill:${ink}`;
  add('text', { x: 0, y: -36, style: letters + ';font-weight:600' }, title);
  keys.forEach((item, index) => {
    const y = height + 32 + 64 * index, line = whole(item.querySelector('path'));
    line.setAttribute('transform', `translate(240 ${y - 36})`);
    made.append(line);
    add('text', { x: 400, y, style: letters }, item.textContent);
  });
  return [title, new XMLSerializer().serializeToString(made), width, all];
};
const save = (name, type, href) => {
  const link = document.createElement('a');
  link.href = href;
  link.download = name.toLowerCase().replace(/[^a-z0-9]+/g, '-') + '.' + type;
  link.click();
};
const data = (text) => 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
for (const svg of $('figure > svg')) {
  const caption = svg.closest('figure').querySelector('figcaption');
  tool('SVG', caption, () => { const [title, text] = standalone(svg); save(title, 'svg', data(text)); });
  tool('PNG', caption, () => {
    const [title, text, width, height] = standalone(svg), picture = new Image();
    picture.onload = () => {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [width, height];
      canvas.getContext('2d').drawImage(picture, 0, 0, width, height);
      save(title, 'png', canvas.toDataURL());
    };
    picture.src = data(text);
  });
  caption.lastChild.title = caption.lastChild.previousSibling.title = 'Save this picture';
}

// ---- values under the pointer
const tip = document.getElementById('tip');
const defs = document.querySelector('svg.defs');
const axes = defs ? JSON.parse(defs.dataset.axes) : {};
const [left, right, top, bottom] = defs ? JSON.parse(defs.dataset.plane) : [0, 1, 0, 1];
const digits = (number, n) => Number(number.toPrecision(n)).toLocaleString('en').replaceAll(',', ' ');
const time = (ns) => {
  const [unit, size] = Object.entries(UNITS).filter(([, size]) => ns >= size).pop() || ['ns', 1];
  return digits(ns / size, 3) + ' ' + unit;
};
const count = (n) => (n < 0.75 ? '0' : n < 30 ? String(Math.round(n)) : '\u2248 ' + digits(n, 2));
const one = (share) => (share >= 0.995 ? 'all' : '1 in ' + digits(1 / share, 2));
const percent = (inverse) => {
  const nines = Math.max(0, Math.ceil(Math.log10(inverse) - 1));
  return ((1 - 1 / inverse) * 100).toFixed(nines) + ' %';
};
// Texts of a position along the x axis and along the y axis.
const KINDS = {
  h: [(x) => 'about ' + time(x), count],
  n: [(x) => percent(x) + ' no later than', (y) => time(y)],
  s: [(x) => 'after ' + time(x), (y) => time(y)],
  c: [(x) => 'later than ' + time(x), (y) => one(1 / y)],
};
const points = (data) => {
  const found = [];
  let x = 0, y = 0;
  for (const [, command, rest] of data.matchAll(/([MLlhv])([^MLlhvz]*)/g)) {
    const n = (rest.match(/-?[\d.]+/g) || []).map(Number);
    if (command === 'M' || command === 'L') [x, y] = n;
    else if (command === 'h') x += n[0];
    else if (command === 'v') y += n[0];
    else { x += n[0]; y += n[1]; }
    found.push([x, y, command === 'M']);
  }
  return found;
};
const at = (line, x) => {
  for (let i = 1; i < line.length; i++) {
    const [x0, y0] = line[i - 1], [x1, y1] = line[i];
    if (x0 < x1 && x >= x0 && x <= x1) return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  }
};
const source = (element) => {
  if (element.localName === 'use') element = document.getElementById(element.getAttribute('href').slice(1));
  else if (element.localName === 'g') element = element.firstElementChild;
  return element ? element.getAttribute('d') : '';
};
let read = new WeakMap();
const lines = (plot) => {
  if (!read.has(plot)) {
    const found = $('[class*=s]', plot).flatMap((element) => {
      const name = /(?:^| )s(\d)$/.exec(element.getAttribute('class'));
      if (!name || element.classList.contains('end')) return [];
      const line = points(source(element));
      const band = element.classList.contains('band');
      return [{ index: Number(name[1]), band, line: band ? line.slice(0, line.length / 2) : line, below: band ? line.slice(line.length / 2).reverse() : [] }];
    });
    read.set(plot, found);
  }
  return read.get(plot);
};
const names = (plot) => $('.key > li', plot.closest('.set')).map((item) => item.textContent);
const swatch = (index, parent) => {
  const svg = document.createElementNS(NS, 'svg'), path = document.createElementNS(NS, 'path');
  svg.setAttribute('viewBox', '0 0 112 36');
  path.setAttribute('class', 's' + index);
  path.setAttribute('d', 'M0,18h112');
  svg.append(path);
  parent.append(svg);
};
const fill = (head, rows) => {
  const box = document.createElement('div');
  element('b', head, box);
  const table = document.createElement('table');
  for (const [index, name, text] of rows) {
    const row = element('tr', '', table);
    const mark = element('td', '', row);
    if (index !== undefined) swatch(index, mark);
    element('td', name, row);
    element('td', text, row);
  }
  box.append(table);
  tip.replaceChildren(box);
};
const cursor = (svg, x, from, to) => {
  let line = svg.querySelector('.cursor');
  if (!line) {
    line = document.createElementNS(NS, 'path');
    line.setAttribute('class', 'cursor');
    svg.append(line);
  }
  line.setAttribute('d', `M${x},${from}V${to}`);
};
const place = (svg, clientX, clientY) => {
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const beside = clientX + 16 + size.width < innerWidth ? clientX + 16 : Math.max(4, clientX - 16 - size.width);
  tip.style.left = Math.min(beside, Math.max(4, innerWidth - size.width - 4)) + 'px';
  tip.style.top = Math.max(4, Math.min(clientY + 16, innerHeight - size.height - 8)) + 'px';
};
const client = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
const inside = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

// ---- latency on a linear axis, in all histograms at once
let isLinear = false, highest = 1;
const ns = (x) => { const [from, to] = axes.h; return 10 ** (from + (x - left) / (right - left) * (to - from)); };
const straight = (latency) => left + latency / highest * (right - left);
const unbent = (x) => straight(ns(x));
const unbend = (data) => points(data).map(([x, y, begins]) => `${begins ? 'M' : 'L'}${unbent(x).toFixed(1)},${y}`).join('');
const linearAxis = (axis) => {
  const size = 10 ** Math.floor(Math.log10(highest / 5) + 1e-9);
  const step = size * [1, 2, 5, 10].find((n) => n * size * 5 >= highest);
  const [grid, ticks] = $('path.grid, path.tick', axis);
  // Vertical lines are drawn anew; the frame goes on with H.
  for (const path of [grid, ticks]) path.setAttribute('d', path.getAttribute('d').replace(/M[\d.]+ [\d.]+V[\d.]+(?![\d.H])/g, ''));
  const [sample, ...others] = $('.tx text:not(.name)', axis);
  others.forEach((label) => label.remove());
  for (let latency = 0; latency <= highest; latency += step) {
    const x = straight(latency).toFixed(0), label = sample.cloneNode();
    grid.setAttribute('d', `${grid.getAttribute('d')}M${x} ${bottom}V${top}`);
    label.setAttribute('x', x);
    label.textContent = latency ? time(latency) : '0';
    sample.before(label);
  }
  sample.remove();
  for (const limit of $('path.limit', axis)) {
    limit.setAttribute('d', limit.getAttribute('d').replace(/[\d.]+/, (x) => unbent(Number(x)).toFixed(0)));
  }
};
const axis = document.getElementById('ah'), bent = new Map();
const turn = () => {
  isLinear = !isLinear;
  if (isLinear) {
    const paths = $('svg.plot[data-kind=h] path[d]:not(.cursor)');
    // It ends at the largest latency or limit.
    const farthest = [...paths, ...$('path.limit', axis)].flatMap((path) => points(path.getAttribute('d'))).reduce((most, [x]) => Math.max(most, x), left);
    highest = ns(farthest);
    bent.set(axis, axis.innerHTML);
    linearAxis(axis);
    for (const path of paths) {
      bent.set(path, path.getAttribute('d'));
      path.setAttribute('d', unbend(bent.get(path)));
    }
  } else {
    for (const [changed, before] of bent) {
      if (changed === axis) axis.innerHTML = before;
      else changed.setAttribute('d', before);
    }
    bent.clear();
  }
  read = new WeakMap();
  $('.linear').forEach((made) => made.setAttribute('aria-pressed', isLinear));
};
for (const svg of $('svg.plot[data-kind=h]')) {
  const caption = svg.closest('figure').querySelector('figcaption');
  tool('linear axis', caption, turn);
  caption.lastChild.classList.add('linear');
  caption.lastChild.setAttribute('aria-pressed', 'false');
}

const showPlot = (svg, x, where) => {
  x = Math.min(right, Math.max(left, x));
  const kind = svg.dataset.kind, [x0, x1, y0, y1] = axes[kind], [head, say] = KINDS[kind];
  const share = (x - left) / (right - left);
  const side = (y) => 10 ** (y0 + (kind === 'c' ? y - top : bottom - y) / (bottom - top) * (y1 - y0));
  const all = lines(svg), named = names(svg);
  const rows = all.filter((line) => !line.band).flatMap(({ index, line }) => {
    const y = at(line, x);
    if (y === undefined) return [];
    const band = all.find((other) => other.band && other.index === index);
    const high = band && at(band.line, x), low = band && at(band.below, x);
    const range = high === undefined || low === undefined ? '' : `  [${say(side(low))} to ${say(side(high))}]`;
    return [[index, named[index] || '', say(side(y)) + range]];
  });
  const straightTo = kind === 'h' && isLinear ? highest : 0;
  fill(head(straightTo ? share * straightTo : 10 ** (x0 + share * (x1 - x0))), rows);
  cursor(svg, x, top, bottom);
  svg.cursorAt = x;
  place(svg, where ? where.clientX : client(svg, x, top).x, where ? where.clientY : client(svg, x, top).y);
};
const showStrip = (svg, x, y, where) => {
  const columns = Number(svg.dataset.columns), seconds = Number(svg.dataset.seconds);
  const column = Math.min(columns - 1, Math.max(0, Math.floor((x - left) / (right - left) * columns)));
  const rows = $('text[data-us]', svg).map((text) => {
    const us = parseInt(text.dataset.us.split(',')[column], 36);
    return [undefined, text.textContent, Number.isNaN(us) ? svg.dataset.empty : time(us * 100)];
  });
  const first = column * seconds;
  fill(seconds > 1 ? `largest in seconds ${first} to ${first + seconds}` : `largest in second ${first + 1}`, rows);
  const middle = left + (column + .5) / columns * (right - left);
  cursor(svg, middle, 0, rows.length * 64);
  svg.cursorAt = middle;
  place(svg, where ? where.clientX : client(svg, middle, 0).x, where ? where.clientY : client(svg, middle, 0).y);
};
const show = (svg, x, y, where) => (svg.classList.contains('heat') ? showStrip(svg, x, y, where) : showPlot(svg, x, where));
const hide = () => {
  tip.hidden = true;
  $('.cursor').forEach((line) => line.remove());
};
for (const name of ['pointermove', 'pointerdown']) {
  document.addEventListener(name, (event) => {
    const svg = event.target.closest && event.target.closest('svg.plot, svg.heat');
    if (!svg) return tip.hidden || hide();
    $('.cursor').forEach((line) => svg.contains(line) || line.remove());
    const { x, y } = inside(svg, event);
    show(svg, x, y, event);
  }, { passive: true });
}
document.addEventListener('keydown', (event) => {
  const svg = event.target;
  if (event.key === 'Escape') return hide();
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || !svg.matches('svg.plot, svg.heat')) return;
  event.preventDefault();
  const by = svg.classList.contains('heat') ? (right - left) / svg.dataset.columns : (right - left) / 60;
  show(svg, (svg.cursorAt === undefined ? (left + right) / 2 : svg.cursorAt) + step * by, 0);
});
document.addEventListener('focusout', hide);
addEventListener('scroll', () => tip.hidden || hide(), { passive: true });

// ---- highlighting: a name in the key dims the other lines
const only = (event) => {
  const item = event.target.closest && event.target.closest('.key > li');
  if (!item) return;
  const index = [...item.parentNode.children].indexOf(item), out = event.type.endsWith('out');
  for (const line of $('.plot [class*=s]', item.closest('.set'))) {
    const name = /(?:^| )s(\d)/.exec(line.getAttribute('class'));
    if (name) line.classList.toggle('dim', !out && Number(name[1]) !== index);
  }
};
for (const name of ['pointerover', 'pointerout', 'focusin', 'focusout']) document.addEventListener(name, only);
})();
