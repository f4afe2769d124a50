/** Somebody else's text, made plain: no colours, nothing that moves a cursor or turns the direction of what follows. */

// Colours and the like (CSI), and titles and links (OSC) where they end: what does not end must not hide the rest.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-Z\\^-~])/g;
const CONTROLS = /[^\P{Cc}\t]/gu;
const TURNS = /[\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function plain(text: string): string {
  return text.replace(ESCAPES, "").replace(CONTROLS, picture).replace(TURNS, escaped);
}

function picture(control: string): string {
  const code = control.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "\u2421" : escaped(control);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
