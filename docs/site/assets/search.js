// Finds chapters that have all words of a query. What precedes is the index, const chapters.
"use strict";
{
	const query = document.getElementById("query");
	const found = document.getElementById("found");
	const most = 12;

	// What readers call what these pages have another word for.
	const synonyms = {
		rollback: ["leave", "restore"], uninstall: ["leave", "remove"], undo: ["leave", "restore"],
		dataframe: ["pandas"], jupyter: ["notebook"], plot: ["figure"], chart: ["figure"],
		allreduce: ["trace", "workload"], "all-reduce": ["trace", "workload"],
		floating: ["integers"], float: ["integers"], double: ["integers"],
		vm: ["microvm"], deadlock: ["deadlock"], rdma: ["roce", "infiniband"], rocev2: ["roce"],
		switchdev: ["switch"], docker: ["container"], parquet: ["parquet"],
	};

	// How well a chapter fits: a word in a heading counts more than one in the text; 0: not at all.
	const scoreOf = (chapter, word) => {
		const inTitle = chapter.title.includes(word), inPage = chapter.page.includes(word);
		if (!inTitle && !inPage && !chapter.text.includes(word)) return 0;
		return 1 + (inTitle ? 10 : 0) + (inPage ? 4 : 0) + (chapter.title === word ? 20 : 0);
	};
	const score = (chapter, words) => {
		let sum = 0;
		for (const word of words) {
			const best = Math.max(...[word, ...(synonyms[word] || [])].map((w) => scoreOf(chapter, w)));
			if (!best) return 0;
			sum += best;
		}
		return sum;
	};

	// near reports whether two words differ by one letter: changed, missing, added or swapped.
	const near = (a, b) => {
		if (Math.abs(a.length - b.length) > 1) return false;
		let i = 0, j = 0;
		while (i < a.length && a[i] === b[i]) i++;
		while (j < Math.min(a.length, b.length) - i && a.at(-1 - j) === b.at(-1 - j)) j++;
		const x = a.slice(i, a.length - j), y = b.slice(i, b.length - j);
		return x.length < 2 && y.length < 2 || x.length === 2 && x[0] === y[1] && x[1] === y[0];
	};
	let vocabulary = null;
	// corrected returns the commonest word of these pages that a word without a hit is near to.
	const corrected = (word) => {
		if (lower.some((c) => score(c, [word])) || word.length < 4) return word;
		if (!vocabulary) {
			vocabulary = new Map();
			for (const c of lower)
				for (const w of (c.title + " " + c.text).match(/[a-z][a-z0-9_-]{3,}/g) || [])
					vocabulary.set(w, (vocabulary.get(w) || 0) + 1);
			for (const w of Object.keys(synonyms)) vocabulary.set(w, vocabulary.get(w) || 1);
		}
		const close = [...vocabulary].filter(([w]) => near(w, word)).sort((a, b) => b[1] - a[1]);
		return close.length ? close[0][0] : word;
	};
	const lower = chapters.map((c) => ({
		c, title: c.t.toLowerCase(), page: c.p.toLowerCase(), text: c.x.toLowerCase(),
	}));
	const excerpt = (chapter, word) => {
		const at = Math.max(0, chapter.text.indexOf(word) - 50);
		return (at ? "... " : "") + chapter.c.x.slice(at, at + 150);
	};
	const item = (chapter, word) => {
		const li = document.createElement("li"), a = document.createElement("a");
		a.href = chapter.c.u;
		const b = document.createElement("b"), small = document.createElement("small");
		b.textContent = chapter.c.t === chapter.c.p ? chapter.c.t : `${chapter.c.p}: ${chapter.c.t}`;
		small.textContent = excerpt(chapter, word);
		a.append(b, small);
		li.append(a);
		return li;
	};
	const show = () => {
		const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
		found.hidden = !words.length;
		if (!words.length) return;
		const find = (words) => lower.map((c) => [score(c, words), c]).filter(([s]) => s)
			.sort((a, b) => b[0] - a[0]).slice(0, most);
		let hits = find(words);
		if (!hits.length) hits = find(words.map(corrected));
		found.replaceChildren(...hits.map(([, c]) => item(c, words[0])));
		if (!hits.length) found.textContent = "Nothing found. Try fewer words.";
	};
	query.addEventListener("input", show);

	// Commands are copied without their prompts and what they print.
	for (const block of document.querySelectorAll("main pre")) {
		const lines = block.textContent.split("\n");
		const commands = lines.filter((l) => l.startsWith("$ ") || l.startsWith("# ")).map((l) => l.slice(2));
		const isConsole = lines.some((l) => l.startsWith("$ "));
		const button = document.createElement("button");
		button.type = "button";
		button.className = "copy";
		button.textContent = "Copy";
		button.onclick = async () => {
			await navigator.clipboard.writeText(isConsole ? commands.join("\n") : block.textContent);
			button.textContent = "Copied";
			setTimeout(() => { button.textContent = "Copy"; }, 1500);
		};
		const box = document.createElement("div");
		box.className = "code";
		block.replaceWith(box);
		box.append(block, button);
	}
	document.addEventListener("keydown", (e) => {
		if (e.key === "/" && document.activeElement !== query) {
			e.preventDefault();
			query.focus();
		}
		if (e.key === "Escape") {
			query.value = "";
			show();
		}
		if (e.key === "Enter" && document.activeElement === query) found.querySelector("a")?.click();
	});
	found.addEventListener("click", () => { found.hidden = true; });
	// #q=words in the address searches, so that a search can be linked to.
	const asked = new URLSearchParams(location.hash.slice(1)).get("q");
	if (asked) {
		query.value = asked;
		show();
	}
}
