/** Commands as lines, the way a POSIX shell splits them. */

const PLAIN = /^[A-Za-z0-9_@%+=:,./${}-]+$/;

export function asLine(words: readonly unknown[]): string {
  return words
    .map((word) => {
      const text = String(word);
      return PLAIN.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
    })
    .join(" ");
}

/** Null where a quote is left open. */
export function asWords(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    if (quote) {
      if (char === quote) quote = "";
      else if (char === "\\" && quote === '"' && '"\\'.includes(line.charAt(at + 1))) word += line.charAt(++at);
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (char === "\\") {
      if (at + 1 >= line.length) return null;
      word = (word ?? "") + line.charAt(++at);
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (quote) return null;
  return word === null ? words : [...words, word];
}
