/** A value, laid out to be read and copied. */

import { Copy } from "../ui/parts";

const SHOWN_MOST = 60_000;

export function Json({ value, what }: { value: unknown; what: string }) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return <Text text={text} what={what} />;
}

export function Text({ text, what }: { text: string; what: string }) {
  return (
    <div className="value">
      <Copy text={text} what={what} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it */}
      <pre tabIndex={0}>{text.slice(0, SHOWN_MOST)}</pre>
      {text.length > SHOWN_MOST && (
        <p className="faint">
          The first {SHOWN_MOST.toLocaleString()} of {text.length.toLocaleString()} characters are shown; all of them
          are copied.
        </p>
      )}
    </div>
  );
}

export function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}
