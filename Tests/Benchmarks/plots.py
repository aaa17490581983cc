"""The measurements as SVG plots, one file for each part: bars for each unit, and lines where something was measured for several sizes."""

import subprocess

from laboratory import BY_SIZE

OURS, RIVALS = 0x2F6DB3, 0x9AA3AD
# How the names of rows begin that are not Earshot's.
RIVAL_NAMES = ("socat", "nc", "rsync", "scp", "cp", "mosquitto", "ZeroMQ", "JetStream", "the way by itself")
# In pixels.
WIDTH, BAR, FRAME, LINES = 900, 22, 90, 420

HEAD = """\
set terminal svg size {width},{height} dynamic background rgb "white" font "sans-serif,12"
set output {output}
set multiplot
unset key
set tics nomirror out
set border 3
"""
BARS = """\
set origin 0,{bottom}
set size 1,{share}
unset logscale
set title {title}
set lmargin 42
set rmargin 12
set xrange [0:*]
set yrange [{count}-0.5:-0.5]
set style fill solid noborder
$rows << END
{rows}
END
plot $rows using (0.5*$2):0:(0.5*$2):(0.36):3:yticlabels(1) with boxxyerror linecolor rgb variable, \\
     $rows using 2:0:4 with labels left offset 0.5,0
"""
CURVES = """\
set origin 0,{bottom}
set size 1,{share}
set title {title}
set lmargin 14
set rmargin 4
set xlabel {abscissa}
set xrange [*:*]
set yrange [*:*]
set logscale xy
set ytics auto
set key bottom right
{data}
plot {lines}
unset key
unset xlabel
"""


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', "'") + '"'


def is_rival(name):
    return name.strip().startswith(RIVAL_NAMES)


def bars(unit, rows):
    """What plots the rows of one unit, without its place."""
    lines = "\n".join(
        f"{quoted(what.strip())} {value} {RIVALS if is_rival(what) else OURS} {quoted(f'{value:,.2f}' if abs(value) < 100 else f'{value:,.0f}')}"
        for what, value in rows
    )
    return lambda bottom, share: BARS.format(bottom=bottom, share=share, title=quoted(unit), count=len(rows), rows=lines)


def curves(unit, abscissa, points):
    """What plots values against sizes, a line for each name, without its place."""
    names = list(dict.fromkeys(name for name, _, _ in points))
    data = "\n".join(
        f"$line{number} << END\n" + "\n".join(f"{size} {value}" for one, size, value in points if one == name) + "\nEND"
        for number, name in enumerate(names)
    )
    lines = ", ".join(
        f"$line{number} using 1:2 with linespoints linewidth 2 title {quoted(name)}" for number, name in enumerate(names)
    )
    return lambda bottom, share: CURVES.format(
        bottom=bottom, share=share, title=quoted(unit), abscissa=quoted(abscissa), data=data, lines=lines)


def draw(rows, points, directory):
    """Writes the plots of all parts; their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for part in dict.fromkeys(row[0] for row in rows):
        panels = []
        for unit in dict.fromkeys(row[3] for row in rows if row[0] == part):
            # A ratio compares two rows that are there. A row that was not measured has no bar, nor have zeros alone.
            own = [(row[1], row[2]) for row in rows if row[0] == part and row[3] == unit and row[2] == row[2] and row[4] != BY_SIZE]
            if unit != "x" and any(value for _, value in own):
                panels.append((FRAME + BAR * len(own), bars(unit, own)))
        for kind in dict.fromkeys((point[3], point[4]) for point in points if point[0] == part):
            panels.append((LINES, curves(*kind, [(name, size, value) for one, name, size, *of, value in points if (one, *of) == (part, *kind)])))
        height = sum(size for size, _ in panels)
        path = directory / f"{part}.svg"
        script, bottom = HEAD.format(width=WIDTH, height=height, output=quoted(path)), height
        for size, panel in panels:
            bottom -= size
            script += panel(bottom / height, size / height)
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        paths.append(path)
    return paths
