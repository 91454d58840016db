/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on with a report whose second figure was zoomed, as a reader does, and returns what
   came of it. */
(async () => {
	const figure = document.querySelectorAll("figure[data-live]")[1];
	const out = {tip: figure.querySelector(".tip").textContent};
	const reset = figure.querySelector(".reset"), button = figure.querySelector(".legend button");
	out.reset = !reset.hidden;
	reset.click();
	out.zoomedOut = reset.hidden;
	button.click();
	out.pressed = button.getAttribute("aria-pressed");
	const view = document.querySelector("figure.network"), range = view.querySelector("input");
	out.when = view.querySelector("output").textContent;
	out.before = view.querySelectorAll("svg.net g:last-child path").length;
	range.value = range.max;
	range.dispatchEvent(new Event("input"));
	out.later = view.querySelector("output").textContent;
	out.after = view.querySelectorAll("svg.net g:last-child path").length;
	out.shown = view.querySelectorAll("svg.net").length;
	const link = [...figure.querySelectorAll(".save a")].find((a) => a.textContent === "csv");
	link.addEventListener("click", (e) => e.preventDefault());
	link.click();
	out.csv = (await (await fetch(link.href)).text()).split("\n")[0];
	return out;
})()
