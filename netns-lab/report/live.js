/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the figures with uPlot: values under the pointer, zoom by dragging, double click to zoom
   out, and a legend that hides curves and bars. Without this script readers see the SVG. */
(function () {
	"use strict";

	const figures = JSON.parse(document.getElementById("live-data").textContent);
	const dark = matchMedia("(prefers-color-scheme: dark)");
	const pixelsPerPoint = 96 / 72;
	const font = "12px \"Liberation Sans\", Arimo, Arial, Helvetica, sans-serif";

	/* unpack expands [count, value] to equal values. */
	function unpack(list) {
		const values = [];
		for (const v of list) {
			if (!Array.isArray(v)) values.push(v);
			else for (let i = 0; i < v[0]; i++) values.push(v[1]);
		}
		return values;
	}

	for (const figure of figures)
		for (const [i, panel] of figure.panels.entries())
			if (panel.x || panel.same) {
				panel.x = panel.same ? figure.panels[i - 1].x : unpack(panel.x);
				for (const c of panel.curves) {
					c.y = unpack(c.y);
					if (c.low) c.low = unpack(c.low);
				}
			}

	function theme() {
		return dark.matches
			? {text: "#d5d8de", grid: "#3a3f47", line: "#6b717c"}
			: {text: "#1a1a1a", grid: "#d4d4d4", line: "#888"};
	}

	/* shown lightens a colour on a dark page, so that it can be told from the background. */
	function shown(color) {
		if (!color || !dark.matches) return color;
		const n = parseInt(color.slice(1), 16);
		const mixed = [n >> 16, n >> 8 & 255, n & 255].map((v) => Math.round(v + (255 - v) * 0.42));
		return "#" + mixed.map((v) => v.toString(16).padStart(2, "0")).join("");
	}

	function number(v) {
		return v == null ? "" : String(parseFloat(v.toPrecision(4)));
	}

	function element(name, className, parent, text) {
		const e = document.createElement(name);
		e.className = className;
		if (text) e.textContent = text;
		if (parent) parent.append(e);
		return e;
	}

	function draw(holder, figure) {
		const still = holder.querySelector(".still");
		const live = element("div", "live", null);
		const hidden = new Set();
		let plots = [];
		let zoom = null;

		const bar = element("div", "legend", live);
		const reset = element("button", "reset", null, "Reset zoom");
		for (const entry of figure.legend) {
			const button = element("button", "", bar);
			const swatch = element("span", "swatch", button);
			if (entry.marker) button.append(entry.marker + " ");
			button.append(entry.name);
			button.type = "button";
			button.setAttribute("aria-pressed", "true");
			button.title = "Show or hide " + entry.name;
			button.onclick = () => {
				if (!hidden.delete(entry.name)) hidden.add(entry.name);
				button.setAttribute("aria-pressed", String(!hidden.has(entry.name)));
				build();
			};
			button.paint = () => {
				const color = shown(entry.fill || entry.line);
				swatch.hidden = Boolean(entry.unlined);
				if (figure.names && entry.hatched) {
					swatch.style.cssText = "height:9px;border:1px solid " + color + ";background:" +
						"repeating-linear-gradient(45deg," + color + " 0 1px,transparent 1px 4px)";
					return;
				}
				swatch.style.borderTop = (entry.fill ? "9px solid " : entry.dashes ? "2px dashed " :
					"3px solid ") + color;
				swatch.style.color = color;
			};
		}
		reset.type = "button";
		reset.hidden = true;
		reset.onclick = () => setZoom(null);
		bar.append(reset);
		const body = element("div", "panels", live);
		body.setAttribute("role", "img");
		body.setAttribute("aria-label", figure.title);

		/* setZoom shows the same times in all panels: all for null. */
		function setZoom(range) {
			const whole = [figure.xMin, figure.xMax];
			zoom = range && range[1] - range[0] < (whole[1] - whole[0]) * 0.999 ? range : null;
			reset.hidden = !zoom;
			const [min, max] = zoom || whole;
			for (const u of plots)
				if (u.scales.x.min !== min || u.scales.x.max !== max) u.setScale("x", {min, max});
		}

		const isHidden = (thing) => hidden.has(thing.name) || hidden.has(thing.note);

		/* names is the room that the names of rows need, so that all panels start at the same x. */
		const names = Math.max(0, ...figure.panels.flatMap((p) => (p.rows || []).map((r) => r.name.length)));
		const axisWidth = Math.max(46, 8 + 6.2 * names);

		function xText(v) {
			if (figure.names) return figure.names[Math.round(v)];
			return number(figure.log ? 10 ** v : v);
		}

		/* tick is the room and the turn of the texts below the lowest panel. */
		function tick() {
			if (!figure.names) return {size: 26, rotate: 0};
			const longest = 6.4 * Math.max(...figure.names.map((name) => name.length));
			const slot = (Math.max(body.clientWidth, 200) - axisWidth - 28) / figure.names.length;
			if (longest + 6 < slot) return {size: 26, rotate: 0};
			return {size: Math.min(20 + 0.72 * longest, 130), rotate: -45};
		}

		function build() {
			for (const u of plots) u.destroy();
			plots = [];
			body.replaceChildren();
			for (const button of bar.children) if (button.paint) button.paint();
			const sync = uPlot.sync(figure.title + Math.random());
			figure.panels.forEach((panel, i) => {
				if (panel.label) element("div", "label", body, panel.label);
				const last = i === figure.panels.length - 1;
				const make = figure.names ? namesOf : panel.rows ? rowsOf : curvesOf;
				plots.push(make(panel, last, sync));
			});
			setZoom(zoom);
		}

		/* options are what panels of curves and of rows have in common. */
		function options(panel, last, sync, more) {
			const colors = theme(), below = tick();
			const titleSize = figure.xLabel ? 18 : 0;
			const axis = {stroke: colors.text, font, grid: {stroke: colors.grid, width: 1},
				ticks: {show: false}};
			const tip = element("div", "tip", null);
			tip.hidden = true;
			const o = {
				width: Math.max(body.clientWidth, 200),
				height: Math.round(panel.height * pixelsPerPoint) + (last ? below.size + titleSize : 8) + 6,
				padding: [6, 10, 0, 0],
				legend: {show: false},
				scales: {x: {time: false, range: (u, min, max) => [min, max]},
					y: {range: () => [panel.yMin, panel.yMax]}},
				cursor: {
					drag: {x: true, y: false, dist: 4},
					sync: {key: sync.key, filters: {pub: (type) => type === "mousemove" || type === "mouseleave"}},
					bind: {dblclick: () => () => { setZoom(null); return null; }},
				},
				axes: [
					{...axis, size: last ? below.size : 8, label: last && titleSize ? figure.xLabel : undefined,
						labelSize: titleSize, labelFont: font, rotate: last ? below.rotate : 0,
						values: (u, at) => at.map((v) => last ? xText(v) : "")},
					{...axis, size: axisWidth, label: panel.yLabel || " ", labelSize: 18, labelFont: font, space: 28},
				],
				hooks: {
					ready: [(u) => u.over.append(tip)],
					setScale: [(u, key) => {
						if (key === "x" && plots.includes(u)) setZoom([u.scales.x.min, u.scales.x.max]);
					}],
					setCursor: [(u) => {
						const {left, idx} = u.cursor;
						const lines = left >= 0 && idx != null ? more.values(u, idx, u.posToVal(left, "x")) : [];
						tip.hidden = !lines.length;
						tip.replaceChildren();
						for (const [color, text] of lines) {
							const line = element("div", "", tip, text);
							if (color) line.style.color = color;
						}
						tip.className = left > u.over.clientWidth / 2 ? "tip left" : "tip";
					}],
					draw: [more.draw],
				},
			};
			if (figure.log) o.axes[0].splits = (u, axis, min, max) => powers(min, max);
			if (figure.names) {
				o.axes[0].splits = (u, axis, min, max) =>
					figure.names.map((name, i) => i).filter((i) => i >= min && i <= max);
				o.axes[0].grid = {show: false};
			}
			if (panel.log) {
				o.axes[1].splits = (u, axis, min, max) => powers(min, max);
				o.axes[1].values = (u, at) => at.map((v) => number(10 ** v));
			}
			return o;
		}

		/* powers returns the places of round numbers on a logarithmic axis. */
		function powers(min, max) {
			const at = [];
			for (let p = Math.floor(min); p <= max; p++)
				for (const s of max - min > 3 ? [1] : max - min > 0.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7])
					if (p + Math.log10(s) >= min && p + Math.log10(s) <= max) at.push(p + Math.log10(s));
			return at;
		}

		function unitOf(panel) {
			const found = /\(([^)]*)\)/.exec(panel.yLabel || "");
			return found ? " " + found[1] : "";
		}

		function timeText(x) {
			const found = /\(([^)]*)\)/.exec(figure.xLabel || "");
			return xText(x) + (found ? " " + found[1] : "");
		}

		function curvesOf(panel, last, sync) {
			const visible = panel.curves.filter((c) => !isHidden(c));
			const data = [panel.x], bands = [], series = [{}];
			let below = null;
			for (const c of visible) {
				const at = data.length;
				if (panel.stacked && below) bands.push({series: [at, at - 1], fill: shown(c.line) + "55"});
				const fill = c.fill ? shown(c.fill) : panel.stacked && !below ? shown(c.line) + "55" : undefined;
				below = panel.stacked && below ? c.y.map((v, k) => v + below[k]) : c.y;
				data.push(below);
				series.push({label: c.name, stroke: c.low ? "transparent" : shown(c.line), width: 1.6,
					points: {show: false}, fill: c.low ? undefined : fill,
					dash: c.dashes && c.dashes.map((d) => d * pixelsPerPoint)});
				if (!c.low) continue;
				data.push(c.low);
				series.push({stroke: "transparent", points: {show: false}});
				bands.push({series: [at, at + 1], fill: shown(c.line) + "44"});
			}
			const o = options(panel, last, sync, {
				values: (u, idx, x) => [["", timeText(panel.x[idx])]].concat(visible.map((c) =>
					[shown(c.fill && !c.dashes ? "" : c.line), c.name + (c.note ? " (" + c.note + ")" : "") + ": " +
						(c.low ? number(c.low[idx]) + " to " : "") + number(c.y[idx]) + unitOf(panel)]).reverse()),
				draw: (u) => {
					/* rings of a stack stand on the curves below them */
					for (const m of panel.marks || [])
						if (panel.stacked ? visible.length === panel.curves.length : !isHidden(m)) ring(u, m);
					for (const [from, to] of panel.spans || []) arrow(u, from, to, panel.yMin + 0.74 * (panel.yMax - panel.yMin));
				},
			});
			o.bands = bands;
			o.series = series;
			return new uPlot(o, data, body);
		}

		function ring(u, marks) {
			const c = u.ctx;
			c.save();
			c.beginPath();
			c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
			c.clip();
			c.strokeStyle = shown(marks.line);
			c.lineWidth = 1.5 * devicePixelRatio;
			for (const [x, y] of marks.at) {
				c.beginPath();
				c.arc(u.valToPos(x, "x", true), u.valToPos(y, "y", true), 3.2 * devicePixelRatio, 0, 7);
				c.stroke();
			}
			c.restore();
		}

		function arrow(u, from, to, y) {
			if (to <= from) return;
			const c = u.ctx, at = u.valToPos(y, "y", true), r = devicePixelRatio;
			const a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
			c.save();
			c.beginPath();
			c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
			c.clip();
			c.strokeStyle = c.fillStyle = theme().text;
			c.lineWidth = r;
			c.beginPath();
			c.moveTo(a, at);
			c.lineTo(b, at);
			c.stroke();
			for (const [x, side] of [[a, 1], [b, -1]]) {
				c.beginPath();
				c.moveTo(x, at);
				c.lineTo(x + side * 7 * r, at - 3.5 * r);
				c.lineTo(x + side * 7 * r, at + 3.5 * r);
				c.fill();
			}
			c.setLineDash([3 * r, 3 * r]);
			for (const x of [a, b]) {
				c.beginPath();
				c.moveTo(x, u.bbox.top);
				c.lineTo(x, u.bbox.top + u.bbox.height);
				c.stroke();
			}
			c.restore();
		}

		function rowsOf(panel, last, sync) {
			const rows = panel.rows, n = rows.length;
			const o = options(panel, last, sync, {
				values: (u, idx, x) => {
					const lines = [["", timeText(x)]];
					for (const row of rows) {
						const box = row.boxes.find((b) => b[0] <= x && x < b[1]);
						if (box && !hidden.has(box[4]))
							lines.push([shown(box[3]), row.name + ": " + (box[4] || Math.round(box[2] * 100) + "%")]);
					}
					return lines.length > 1 ? lines : [];
				},
				draw: (u) => {
					const c = u.ctx, step = u.bbox.height / (panel.yMax - panel.yMin);
					const top = u.bbox.top + (panel.yMax - panel.yMin - n) * step;
					c.save();
					c.beginPath();
					c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
					c.clip();
					rows.forEach((row, i) => {
						for (const [from, to, share, fill, name] of row.boxes) {
							if (name && hidden.has(name)) continue;
							c.globalAlpha = 0.16 + 0.84 * share;
							c.fillStyle = shown(fill);
							const a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
							c.fillRect(a, top + (i + 0.1) * step, Math.max(b - a, 0.5), 0.8 * step);
						}
					});
					c.restore();
				},
			});
			const height = panel.yMax - panel.yMin;
			Object.assign(o.axes[1], {label: undefined, size: axisWidth + 18, gap: 3, grid: {show: false},
				font: font.replace("12px", "10px"),
				splits: () => rows.map((r, i) => panel.yMin + n - i - 0.5),
				values: () => rows.map((r) => r.name)});
			o.series = [{}, {points: {show: false}, stroke: "transparent"}];
			const xs = [], steps = 400;
			for (let i = 0; i <= steps; i++) xs.push(figure.xMin + (figure.xMax - figure.xMin) * i / steps);
			return new uPlot(o, [xs, xs.map(() => null)], body);
		}

		/* namesOf draws what stands over names: bars, and points with lines between them. */
		function namesOf(panel, last, sync) {
			const value = (y) => number(panel.log ? 10 ** y : y) + unitOf(panel);
			const visible = panel.over.filter((o) => !isHidden(o));
			const o = options(panel, last, sync, {
				values: (u, idx) => {
					const lines = [["", figure.names[idx]]];
					const here = (x) => Math.round(x) === idx;
					for (const s of visible) {
						const add = (text) => lines.push([shown(s.hatched ? s.line : s.fill || s.line),
							(s.name ? s.name + ": " : "") + text]);
						for (const [from, to, foot, y, text] of s.bars || [])
							if (here((from + to) / 2) && (text || y !== foot)) add(text || value(y - foot));
						for (const [x, y] of s.points || []) {
							if (!here(x)) continue;
							const within = (s.intervals || []).find((i) => i[0] === x);
							add(value(y) + (within ? ", " + value(within[1]) + " to " + value(within[2]) : ""));
						}
						const seeds = (s.dots || []).filter((d) => here(d[0])).map((d) => d[1]);
						if (seeds.length)
							add(seeds.length + " from " + value(Math.min(...seeds)) + " to " + value(Math.max(...seeds)));
						if (!s.points)
							for (const i of s.intervals || []) if (here(i[0])) add(value(i[1]) + " to " + value(i[2]));
						for (const x of s.without || []) if (here(x)) add("not reached or not measured");
					}
					return lines.length > 1 ? lines : [];
				},
				draw: (u) => {
					const c = u.ctx, r = devicePixelRatio;
					c.save();
					c.beginPath();
					c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
					c.clip();
					c.font = font.replace("12px", 10 * r + "px");
					for (const s of visible) over(u, c, r, s);
					c.restore();
				},
			});
			o.series = [{}, {points: {show: false}, stroke: "transparent"}];
			o.cursor.points = {show: false};
			return new uPlot(o, [figure.names.map((name, i) => i), figure.names.map(() => null)], body);
		}

		/* over draws one entry of the legend over names. */
		function over(u, c, r, s) {
			const px = (v) => u.valToPos(v, "x", true), py = (v) => u.valToPos(v, "y", true);
			const upright = (s.bars || []).some((b) => b[4] &&
				c.measureText(b[4]).width > px(b[1]) - px(b[0]) + 2 * r);
			for (const [from, to, foot, y, text, above] of s.bars || []) {
				const left = px(from), width = px(to) - left, bottom = py(foot), top = py(y == null ? foot : y);
				if (s.hatched) hatch(c, r, left, top, width, bottom - top, shown(s.line));
				else if (s.fill) {
					c.fillStyle = shown(s.fill);
					c.strokeStyle = theme().line;
					c.lineWidth = 0.7 * r;
					c.fillRect(left, top, width, bottom - top);
					c.strokeRect(left, top, width, bottom - top);
				}
				c.fillStyle = theme().text;
				c.save();
				c.translate(left + width / 2, (above == null ? top : py(above)) - 4 * r);
				if (upright || y == null) c.rotate(-Math.PI / 2);
				c.textAlign = upright || y == null ? "left" : "center";
				c.textBaseline = upright || y == null ? "middle" : "bottom";
				c.fillText(text, 0, 0);
				c.restore();
			}
			c.strokeStyle = c.fillStyle = shown(s.line);
			c.lineWidth = 1.4 * r;
			c.setLineDash((s.dashes || []).map((d) => d * pixelsPerPoint * r));
			c.beginPath();
			let last = null;
			for (const [x, y] of s.points || []) {
				if (last == null || x - last > 1.5) c.moveTo(px(x), py(y));
				else c.lineTo(px(x), py(y));
				last = x;
			}
			c.stroke();
			c.setLineDash([]);
			c.beginPath();
			for (const [x, low, high] of s.intervals || [])
				for (const [x0, y0, x1, y1] of [[0, low, 0, high], [-3, low, 3, low], [-3, high, 3, high]]) {
					c.moveTo(px(x) + x0 * r, py(y0));
					c.lineTo(px(x) + x1 * r, py(y1));
				}
			c.stroke();
			c.lineWidth = 0.8 * r;
			for (const [x, y] of s.dots || []) {
				c.beginPath();
				c.arc(px(x), py(y), 1.8 * r, 0, 7);
				c.stroke();
			}
			c.textAlign = "center";
			c.textBaseline = "middle";
			for (const [x, y] of s.points || []) if (s.marker) c.fillText(s.marker, px(x), py(y));
			for (const x of s.without || []) c.fillText("×", px(x), u.bbox.top + 8 * r);
		}

		function hatch(c, r, left, top, width, height, color) {
			c.save();
			c.strokeStyle = color;
			c.lineWidth = 0.7 * r;
			c.strokeRect(left, top, width, height);
			c.beginPath();
			c.rect(left, top, width, height);
			c.clip();
			c.beginPath();
			for (let d = -height; d < width; d += 5 * r) {
				c.moveTo(left + d, top + height);
				c.lineTo(left + d + height, top);
			}
			c.stroke();
			c.restore();
		}

		still.hidden = true;
		still.after(live);
		build();
		dark.addEventListener("change", build);
		let width = body.clientWidth;
		new ResizeObserver(() => {
			if (body.clientWidth === width) return;
			width = body.clientWidth;
			if (figure.names) build(); /* the names may have to turn */
			for (const u of plots) u.setSize({width: Math.max(width, 200), height: u.height});
		}).observe(live);
	}

	/* save adds links to files that the script writes: the figure's SVG and, if it has its values,
	   these as CSV. */
	function save(holder) {
		const file = holder.dataset.file, figure = figures[holder.dataset.live - 1];
		let list = holder.querySelector(".save");
		if (!file) return;
		if (!list) list = element("p", "save", holder.querySelector(".body"), "Save as");
		function link(format, type, write, title) {
			const a = element("a", "", null, format);
			a.href = "#";
			a.title = title || "";
			a.onclick = () => {
				a.download = file + "." + format;
				a.href = URL.createObjectURL(new Blob([write()], {type}));
			};
			list.append(" ", a);
		}
		link("svg", "image/svg+xml", () => {
			const svg = holder.querySelector(".still svg").cloneNode(true);
			svg.style.fontSize = "8.5px";
			svg.style.fontFamily = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif";
			return new XMLSerializer().serializeToString(svg);
		});
		if (figure && !figure.names) /* the page has the others' values as they are */
			link("csv", "text/csv", () => csv(figure), figure.thinned
				? "The lowest and highest values of each column. For all values: pcn report --figures" : "");
	}

	/* csv writes the values of a figure as `pcn report --figures` does. */
	function csv(figure) {
		const lines = [["Panel", "Curve", figure.xLabel, "Value", "Unit"]];
		for (const p of figure.panels) {
			const [, quantity, unit] = /^(.*?)(?: \((.*)\))?$/.exec(p.yLabel || "");
			const panel = ((p.run || "") + " " + quantity).trim();
			for (const c of p.curves || [])
				for (const y of c.low ? [c.low, c.y] : [c.y])
					p.x.forEach((x, i) => lines.push([panel, c.note ? c.name + ", " + c.note : c.name,
						figure.log ? 10 ** x : x, y[i], unit || ""]));
			for (const m of p.marks || [])
				for (const [x, y] of m.at) lines.push([panel, (m.name + ", paper").replace(/^, /, ""), x, y, unit || ""]);
			for (const r of p.rows || [])
				for (const [from, to, share, , name] of r.boxes)
					lines.push([panel, r.name + ", " + (name || "share"), from, share, ""],
						[panel, r.name + ", " + (name || "share"), to, 0, ""]);
		}
		return lines.map((line) => line.map((cell) =>
			/[",\n]/.test(cell) ? '"' + cell.replace(/"/g, '""') + '"' : cell).join(",")).join("\n") + "\n";
	}

	/* Figures are drawn when they come near to the screen: a page may have dozens. */
	const near = new IntersectionObserver((entries) => {
		for (const e of entries) {
			if (!e.isIntersecting) continue;
			near.unobserve(e.target);
			draw(e.target, figures[e.target.dataset.live - 1]);
		}
	}, {rootMargin: "600px"});
	for (const holder of document.querySelectorAll("figure[data-live]")) near.observe(holder);
	for (const holder of document.querySelectorAll("figure[data-file]")) save(holder);
})();
