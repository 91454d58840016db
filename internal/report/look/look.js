/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a page and returns what is wrong with it. */
(() => {
	const wrong = [...window.thrown];
	const root = document.documentElement;
	if (root.scrollWidth > innerWidth)
		wrong.push("the page is " + root.scrollWidth + " pixels wide, want " + innerWidth);

	/* Figures: drawn, not empty, and within their place. */
	for (const figure of document.querySelectorAll("figure")) {
		const name = (figure.querySelector("figcaption b, figcaption") || figure).textContent.slice(0, 40);
		const place = figure.getBoundingClientRect();
		const drawings = [...figure.querySelectorAll("svg:not(svg svg)")].filter((d) => d.getClientRects().length);
		if (!drawings.length && !figure.querySelector("table")) wrong.push(name + " has no drawing");
		for (const d of drawings) {
			const at = d.getBoundingClientRect();
			if (at.width < 20 || at.height < 8) wrong.push(name + " has a drawing of no size");
			if (at.right > place.right + 1 || at.left < place.left - 1)
				wrong.push(name + " has a drawing that sticks out");
			/* what a panel shows is in a picture of its own, beside the axes */
			const ink = d.querySelector("svg") || d;
			if (!ink.querySelector("path, line, rect")) wrong.push(name + " has an empty picture");
		}
	}

	/* Text: contrast of 4.5 to its background, as WCAG 2.2 asks at level AA. */
	const rgb = (c) => (c.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
	const light = (c) => {
		const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = rgb(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0.5) return c;
		}
		return [255, 255, 255];
	};
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let n = 0;
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.textContent.trim() || !e.getClientRects().length || e.closest("script, .slider, .switch")) continue;
		if (e.closest("svg.net")) continue; /* names of nodes, over nodes of another colour */
		const style = getComputedStyle(e);
		const ink = rgb(e.closest("svg") ? style.fill : style.color);
		/* Pictures that a filter turns dark are black on white before it does. */
		const turned = e.closest("svg") && getComputedStyle(e.closest("svg")).filter !== "none";
		const [a, b] = [light(ink), light(turned ? [255, 255, 255] : behind(e))];
		const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		n++;
		if (contrast < 4.5) wrong.push("contrast of " + contrast.toFixed(1) + ": " + texts.currentNode.textContent.trim().slice(0, 40));
	}
	if (n < 20) wrong.push("only " + n + " texts");
	return wrong;
})()
