// What a page must keep for everyone: names, contrast, headings, sizes, no sideways scrolling. Gives {problems, charts, bottoms, ...}.
(() => {
  const problems = [];
  const visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;
  const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (c) => { const m = c.match(/rgba?\(([^)]+)\)/); if (!m) return null; const p = m[1].split(/[ ,/]+/).map(Number); return p.length > 3 && p[3] === 0 ? null : p.slice(0, 3); };
  const background = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  let lowest = 99;
  for (const e of document.body.querySelectorAll('*')) {
    if (!visible(e) || !['SCRIPT', 'STYLE', 'NOSCRIPT'].every((t) => e.tagName !== t)) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const ink = parse(svg ? style.fill : style.color);
    if (!ink) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = contrast(ink, background(svg ? e.ownerSVGElement.parentElement : e));
    lowest = Math.min(lowest, ratio);
    if (ratio < (large ? 3 : 4.5)) problems.push(`contrast ${ratio.toFixed(2)} of "${e.textContent.trim().slice(0, 40)}"`);
  }
  for (const e of document.querySelectorAll('a, button, input, select, summary')) {
    const name = e.getAttribute('aria-label') || e.textContent.trim() || [...(e.labels || [])].map((l) => l.textContent).join('').trim();
    if (!name) problems.push(`no name: ${e.outerHTML.slice(0, 80)}`);
    if (e.tabIndex < 0) problems.push(`not reachable by keyboard: ${e.outerHTML.slice(0, 80)}`);
    const box = e.getBoundingClientRect();
    if (visible(e) && !e.classList.contains('skip') && box.height < 24) problems.push(`target of ${Math.round(box.height)} px: ${e.outerHTML.slice(0, 80)}`);
  }
  for (const e of document.querySelectorAll('.plot svg')) if (e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')) problems.push('a chart has no name');
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id).filter((id) => !/^(gradient|clip|vg-)/.test(id));
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) problems.push(`id '${id}' stands twice`);
  let level = 0;
  for (const h of document.querySelectorAll('h1, h2, h3, h4')) { const n = Number(h.tagName[1]); if (n > level + 1) problems.push(`heading ${h.tagName} after H${level}`); level = n; }
  if (document.querySelectorAll('h1').length !== 1) problems.push('not exactly one h1');
  for (const [what, ok] of Object.entries({ lang: document.documentElement.lang, title: document.title, viewport: document.querySelector('meta[name=viewport]'), main: document.querySelector('main') })) if (!ok) problems.push(`no ${what}`);
  if (document.documentElement.scrollWidth > innerWidth) problems.push(`scrolls sideways: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  const charts = {}, marks = {};
  for (const e of document.querySelectorAll('[data-chart]')) {
    const name = e.dataset.chart;
    if (e.dataset.drawn !== 'yes') problems.push(`chart '${name}' was not drawn`);
    marks[name] = [...e.querySelectorAll('[aria-roledescription]')].map((m) => m.getAttribute('aria-label'));
  }
  const views = window.loopeggViews || [], names = Object.keys(JSON.parse(document.getElementById('charts').textContent)).filter((n) => document.querySelector(`[data-chart="${n}"]`));
  names.forEach((n, i) => { charts[n] = views[i] ? views[i].data('table').map((d) => ({ ...d })) : null; });
  const bottoms = {};
  for (const e of document.querySelectorAll('.answers .card')) bottoms[e.id] = Math.round(e.getBoundingClientRect().bottom + scrollY);
  return { problems, lowest, charts, marks, bottoms, screens: innerHeight, focus: window.focusTrail || [], open: document.querySelectorAll('.site[open]').length, theme: document.documentElement.dataset.theme || '' };
})()
