// Numbers as texts.

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Three digits: 1.43, 12.3, 123. */
function digits(value) {
  if (!isNumber(value)) return "-";
  const size = Math.abs(value);
  if (size >= 99.95 || size === 0) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : 4);
}

/** Microseconds with the unit that suits them: "1.43 ms". */
function time(us) {
  if (!isNumber(us)) return "-";
  const size = Math.abs(us);
  if (size >= 1e6) return `${digits(us / 1e6)} s`;
  if (size >= 1e3) return `${digits(us / 1e3)} ms`;
  if (size >= 1 || size === 0) return `${digits(us)} µs`;
  return `${digits(us * 1e3)} ns`;
}

const percent = (share) => isNumber(share) ? `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %` : "-";

const times = (ratio) => `${digits(ratio)}×`;

/** The range of a ratio: "1.38 to 1.49". */
const range = (least, most) => isNumber(least) && isNumber(most) ? `${digits(least)} to ${digits(most)}` : "";

const seconds = (value) => !isNumber(value) ? "-" : value >= 90 ? `${Math.floor(value / 60)} min ${Math.round(value % 60)} s` : `${digits(value)} s`;

/** A moment for people: "2026-01-31 12:00 UTC". */
const moment = (text) => `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;

const shortened = (text, most) => text.length <= most ? text : `${text.slice(0, most - 1)}…`;

const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
