/** Icons, drawn as lines on a field of 16. They decorate: what they mean is said beside them or by a label. */

const PATHS = {
  overview: "M2 8.5 8 3l6 5.5M4 7.5V13h8V7.5",
  jobs: "M3 4h10M3 8h10M3 12h6",
  runs: "M5 3.5v9l7-4.5z",
  backfill: "M3 8a5 5 0 1 0 1.6-3.7M3 3v2.5h2.5",
  dead: "M8 2.5 14 13H2zM8 6.5v3M8 11.3v.2",
  workers: "M3 13c0-2.8 2.2-4.5 5-4.5s5 1.7 5 4.5M8 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6",
  audit: "M4 2.5h6l2.5 2.5v8.5h-8.5zM6 7h5M6 10h5",
  access: "M5.5 9.5a3 3 0 1 1 2.8-4H14v2.5h-1.5V10H10V8H8.3a3 3 0 0 1-2.8 1.5",
  shared: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11M5 3v3M10.5 6.5v3M6.5 10v3",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M10.7 10.7 14 14",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  play: "M5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  edit: "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3z",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13h6l.5-8.5",
  more: "M4 8h.01M8 8h.01M12 8h.01",
  back: "M10 3 5 8l5 5",
  next: "M6 3l5 5-5 5",
  down: "M3.5 6 8 10.5 12.5 6",
  check: "M3 8.5 6.5 12 13 4.5",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  sun: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5",
  leave: "M6.5 3H3v10h3.5M7 8h6.5M11 5.5 13.5 8 11 10.5",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M8 4.5V8l2.5 1.5",
  rerun: "M13 8a5 5 0 1 1-1.6-3.7M13 3v2.5h-2.5",
  stop: "M4 4h8v8H4z",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M6.3 6.5c.2-2.3 3.6-2.2 3.5 0 0 1.3-1.8 1.3-1.8 2.7M8 11.3v.1",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13h10",
  link: "M6.5 9.5l3-3M7 4.5l1.3-1.3a2.8 2.8 0 0 1 4 4L11 8.5M5 7.5 3.7 8.8a2.8 2.8 0 0 0 4 4L9 11.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth={name === "more" ? 2.4 : 1.5}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
