// How the page looks, in numbers: texts of charts that cover each other or are cut, texts that are hard to read.

var overlaps = () => {
  const boxes = [...document.querySelectorAll(".chart svg")].map((chart) =>
    [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]));
  const faults = [];
  for (const texts of boxes) texts.forEach(([one, a], n) => texts.slice(n + 1).forEach(([other, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 3) faults.push(`${one} / ${other}`);
  }));
  for (const text of document.querySelectorAll(".chart svg text")) {
    const own = text.getBoundingClientRect(), all = text.closest("svg").getBoundingClientRect();
    if (own.right > all.right + 1 || own.left < all.left - 1) faults.push(`${text.textContent} is cut`);
  }
  return faults;
};

/** Texts whose contrast to their ground is below 4.5 (WCAG 2.2, 1.4.3). */
var lowContrast = () => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = (colour, under) => {
    canvas.globalCompositeOperation = "source-over";
    if (under) { canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1); } else canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((each) => each / 255)
      .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
    return "white";
  };
  const faults = new Set();
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest("svg") || !element.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(element).color, ground(element)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.add(`${element.className} ${element.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return [...faults];
};
