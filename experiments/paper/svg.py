"""Plots as SVG: points, bars in groups, and lines, on linear or logarithmic axes."""
import html
import math
import textwrap

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 470, 76, 24, 34, 136
NOTE_COLUMNS = 165   # characters of a line of the note, in its size
LEGEND_COLUMNS = 5
COLOURS = ["#0b6e4f", "#c8553d", "#33658a", "#8a6d3b", "#6a4c93", "#555555", "#b5838d", "#2a9d8f", "#e9a23b", "#1d3557"]


class Axis:
    def __init__(self, low, high, log=False):
        self.low, self.high, self.log = low, high if high > low else low + 1, log

    def share(self, v):
        if self.log:
            return (math.log(max(v, self.low)) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (v - self.low) / (self.high - self.low)

    def ticks(self):
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 2 else (1,)
            return [m * 10.0 ** e for e in range(first, last + 1) for m in steps if self.low <= m * 10.0 ** e <= self.high]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next((m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 7), 10)
        return [i * step for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def around(values, log=False):
    low, high = min(values), max(values)
    if log:
        return Axis(low / 1.15, high * 1.15, True)
    margin = (high - low or 1) * 0.06
    return Axis(low - margin if low < 0 or low > 0.4 * high else 0, high + margin)


class Plot:
    def __init__(self, title, x_label, y_label, note):
        self.title, self.x_label, self.y_label, self.note, self.parts, self.series = title, x_label, y_label, note, [], []

    def x(self, share):
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, share):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def add(self, text):
        self.parts.append(text)

    def y_axis(self, axis):
        for t in axis.ticks():
            y = self.y(axis.share(t))
            self.add(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e4e4e4"/>')
            self.add(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{t:g}</text>')

    def x_axis(self, axis):
        for t in axis.ticks():
            x = self.x(axis.share(t))
            self.add(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
            self.add(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t:g}</text>')

    def colour(self, name):
        if name not in self.series:
            self.series.append(name)
        return COLOURS[self.series.index(name) % len(COLOURS)]

    def svg(self):
        legend = []
        for i, name in enumerate(self.series):
            row, column = divmod(i, LEGEND_COLUMNS)
            x, y = LEFT + column * (WIDTH - LEFT - RIGHT) / min(LEGEND_COLUMNS, len(self.series)), HEIGHT - 86 + 15 * row
            legend.append(f'<rect x="{x:.1f}" y="{y}" width="10" height="10" fill="{self.colour(name)}"/>'
                          f'<text x="{x + 14:.1f}" y="{y + 9}" font-size="{12 if len(self.series) < 5 else 10}">{html.escape(name)}</text>')
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#333333">'
        words = [f'<title>{html.escape(self.title)}</title>', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
                 f'<text x="{LEFT}" y="20" font-size="14">{html.escape(self.title)}</text>',
                 f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 96}" text-anchor="middle">{html.escape(self.x_label)}</text>',
                 f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{html.escape(self.y_label)}</text>',
                 *(f'<text x="16" y="{HEIGHT - 54 + 13 * i}" font-size="10">{html.escape(line)}</text>' for i, line in enumerate(textwrap.wrap(self.note, NOTE_COLUMNS)))]
        return "\n".join([head, *words, *self.parts, *legend, "</svg>"]) + "\n"


def scatter(plot, points, x_axis, y_axis, radius=4):
    """points: (series, x, y, label)."""
    plot.x_axis(x_axis), plot.y_axis(y_axis)
    for series, x, y, label in points:
        cx, cy = plot.x(x_axis.share(x)), plot.y(y_axis.share(y))
        plot.add(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius}" fill="{plot.colour(series)}" fill-opacity="0.65"><title>{html.escape(label)}</title></circle>')
    return plot.svg()


def lines(plot, points, x_axis, y_axis):
    """points: (series, x, y, label), those of one series joined in order."""
    ordered = {}
    for series, x, y, _ in points:
        ordered.setdefault(series, []).append(f"{plot.x(x_axis.share(x)):.1f},{plot.y(y_axis.share(y)):.1f}")
    for series, places in ordered.items():
        plot.add(f'<polyline points="{" ".join(places)}" fill="none" stroke="{plot.colour(series)}" stroke-width="2"/>')
    return scatter(plot, points, x_axis, y_axis)


def bars(plot, groups, series, values, axis, base=None):
    """values: {(group, series): (value, low, high, label)}; a group without a value has a gap."""
    plot.y_axis(axis)
    wide = (WIDTH - LEFT - RIGHT) / len(groups)
    thick = 0.8 * wide / len(series)
    for g, group in enumerate(groups):
        left = LEFT + g * wide + 0.1 * wide
        plot.add(f'<text x="{left + 0.4 * wide:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" font-size="{10 if len(groups) > 8 else 12}">{html.escape(group)}</text>')
        for s, name in enumerate(series):
            colour = plot.colour(name)
            if (group, name) not in values:
                continue
            value, low, high, label = values[group, name]
            x, top = left + s * thick, plot.y(axis.share(value))
            plot.add(f'<rect x="{x:.1f}" y="{top:.1f}" width="{thick * 0.92:.1f}" height="{max(0.0, plot.y(0) - top):.1f}" fill="{colour}"><title>{html.escape(label)}</title></rect>')
            if low is not None:
                middle = x + thick * 0.46
                plot.add(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{plot.y(axis.share(low)):.1f}" y2="{plot.y(axis.share(high)):.1f}" stroke="#222222"/>')
    if base is not None:
        y = plot.y(axis.share(base))
        plot.add(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#222222" stroke-dasharray="5 3"/>')
    return plot.svg()
