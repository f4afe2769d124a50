/** What jobs share: each kind with its calls, in words, and an example to begin with. */

export type Kind = "calendars" | "pools" | "templates" | "secrets" | "datasets" | "files";

interface About {
  label: string;
  one: string;
  /** What it is for. */
  below: string;
  /** A body to begin with; kinds without one are not written here. */
  example?: string;
}

export const KINDS: Readonly<Record<Kind, About>> = {
  calendars: {
    label: "Calendars",
    one: "calendar",
    below: "Days on which schedules fire, or do not, such as business days.",
    example: "weekdays: [mon, tue, wed, thu, fri]\nclosed:\n  - 2027-01-01\n",
  },
  pools: {
    label: "Pools",
    one: "pool",
    below: "How many runs use something at once, such as a warehouse.",
    example: "slots: 4\n",
  },
  templates: {
    label: "Templates",
    one: "template",
    below: "Jobs that differ a little: a definition with parameters.",
    example: 'parameters:\n  table: {type: string}\nschedule: "0 6 * * *"\ncommand: ["load", "${with.table}"]\n',
  },
  secrets: {
    label: "Secrets",
    one: "secret",
    below: "Written here and given to tasks; nobody reads them back.",
  },
  datasets: { label: "Datasets", one: "dataset", below: "What tasks publish, and which jobs run when it is updated." },
  files: { label: "Job files", one: "file", below: "Files that are scanned, and what became of each." },
};

export const ORDER = Object.keys(KINDS) as Kind[];

export function isKind(text: string): text is Kind {
  return text in KINDS;
}
