/** What the fields of a definition are called, and what they mean where nothing is said. */

export interface Word {
  label: string;
  hint?: string;
  /** What an absent value means. */
  usual?: string;
  /** Such as an example of it. */
  like?: string;
}

const WORDS: Readonly<Record<string, Word>> = {
  name: { label: "Name", hint: "Letters, digits, dots, dashes and underscores." },
  description: { label: "Description" },
  tags: { label: "Tags", like: "finance, nightly" },
  // When it runs.
  "schedule.cron": { label: "Cron expression", like: "0 6 * * 1-5" },
  "schedule.every": { label: "Every", like: "5m" },
  "schedule.at": { label: "At", like: "2026-12-01T06:00:00Z" },
  timezone: { label: "Time zone", usual: "UTC" },
  gap: { label: "When the clocks go forward", hint: "For times that do not exist on that day.", usual: "shift" },
  fold: { label: "When the clocks go back", hint: "For times that come twice on that day.", usual: "first" },
  startAt: { label: "Not before", like: "2026-01-01T00:00:00Z" },
  endAt: { label: "Not from then on", like: "2027-01-01T00:00:00Z" },
  jitter: {
    label: "Spread over",
    hint: "Starts up to this much later, so that jobs do not all start at once.",
    like: "30s",
  },
  calendar: { label: "Calendar", hint: "A shared object: only its days count." },
  blackouts: { label: "Blackouts", hint: "Stretches of time in which it does not fire." },
  events: { label: "Events", like: "- source: shop\n  type: order.paid" },
  // What happens to its runs.
  policy: { label: "Missed fires", hint: "After an outage of the scheduler.", usual: "latest" },
  "catchup.max": { label: "At most so many of them", usual: "100" },
  "catchup.window": { label: "Missed no longer ago than", usual: "1d" },
  overlap: { label: "If the run before is still active", usual: "allow" },
  startDeadline: { label: "Skip if it starts later than", like: "1h" },
  concurrency: { label: "Concurrency" },
  runs: { label: "Runs at once", usual: "no bound" },
  pool: { label: "Pool", hint: "A shared object: jobs of a pool share its slots." },
  slots: { label: "Slots", usual: "1" },
  priority: { label: "Priority", usual: "normal" },
  guarantee: { label: "Guarantee", usual: "at-least-once" },
  // When something fails.
  retry: { label: "Retry" },
  retries: { label: "Retries" },
  attempts: { label: "Attempts", hint: "The first one counts.", usual: "1" },
  delay: { label: "Wait between attempts", usual: "10s" },
  maxDelay: { label: "Wait at most", like: "10m" },
  backoff: { label: "Each wait", usual: "exponential" },
  delays: { label: "Waits", like: "10s, 1m, 10m" },
  "retry.on": { label: "Only after failures named", like: "transient" },
  never: { label: "Never after failures named", like: "InvalidInput" },
  timeout: { label: "Time-out of an attempt", usual: "1h" },
  "sensor.timeout": { label: "Give up after" },
  "approval.timeout": { label: "Answered within" },
  runTimeout: { label: "Time-out of the whole run", like: "6h" },
  onFailure: { label: "When a task has failed", usual: "finish" },
  deadline: { label: "Done by", hint: "A time of day in the schedule's zone; later than that alerts.", like: "07:00" },
  pauseAfterFailures: { label: "Pause after so many failures in a row", usual: "never" },
  notify: { label: "Notify", like: "- on: [failed]\n  to: sns:alerts" },
  cache: { label: "Cache of results" },
  key: { label: "Key" },
  ttl: { label: "Kept for", like: "1d" },
  publishes: { label: "Updates datasets", like: "sales" },
  dependencies: { label: "After jobs", hint: "Short for a schedule after these jobs." },
  params: { label: "Parameters" },
  template: { label: "Template" },
  with: { label: "Values for the template" },
  // Tasks.
  needs: { label: "Needs" },
  when: { label: "Runs when what it needs has ended as", usual: "all_success" },
  if: { label: "Only if", like: "${tasks.extract.output.rows} > 0" },
  map: { label: "Once for each" },
  over: { label: "Of this list", like: "${tasks.list.output}" },
  "map.max": { label: "At most", usual: "1000" },
  branch: { label: "Chooses which of the next tasks run" },
  group: { label: "Group", hint: "Shown as one box in the graph.", like: "load.eu" },
  labels: { label: "Labels of workers", like: "gpu" },
  // Steps.
  command: {
    label: "Command",
    hint: "Split as a shell would, and run without one.",
    like: "python report.py --region eu",
  },
  shell: { label: "Run it in a shell" },
  env: { label: "Environment" },
  secrets: { label: "Secrets", hint: "The id of a secret for each name, never its value." },
  skipExitCode: { label: "Exit code that means skipped", usual: "99" },
  cwd: { label: "Folder" },
  limits: { label: "Limits" },
  cpuTime: { label: "Processor time", like: "10m" },
  memory: { label: "Memory (MB)" },
  processes: { label: "Processes" },
  file: { label: "Largest file (MB)" },
  "limits.output": { label: "Output (MB)" },
  "limits.cpu": { label: "Cores" },
  python: { label: "Function", hint: "A module and a function in it.", like: "reports.daily:main" },
  args: { label: "Arguments", hint: "A list in YAML." },
  kwargs: { label: "Named arguments", hint: "Fields in YAML." },
  code: { label: "Code", hint: "The SHA-256 of a pack." },
  for: { label: "For", like: "10m" },
  until: { label: "Until", like: "2026-12-01T06:00:00Z" },
  url: { label: "Address", like: "https://example.org/hook" },
  method: { label: "Method" },
  headers: { label: "Headers" },
  body: { label: "Body" },
  expect: { label: "Right status codes", like: "200, 204" },
  maxBytes: { label: "Keep so many bytes of the answer" },
  image: { label: "Image", like: "python:3.12-slim" },
  entrypoint: { label: "Entry point" },
  cpu: { label: "CPU", hint: "1024 are one CPU." },
  disk: { label: "Disk (GB)" },
  architecture: { label: "Architecture" },
  spot: { label: "On spot capacity" },
  lambda: { label: "Function", like: "load-sales" },
  qualifier: { label: "Version or alias" },
  async: { label: "Do not wait for its end" },
  payload: { label: "Payload", hint: "Anything in YAML." },
  job: { label: "Job", hint: "Whose run it starts or looks at." },
  every: { label: "Look every", like: "1m" },
  state: { label: "Ended as" },
  within: { label: "Within the last", like: "1d" },
  s3: { label: "An object on S3" },
  http: { label: "A web address" },
  contains: { label: "Answer contains" },
  bucket: { label: "Bucket" },
  prefix: { label: "Prefix" },
  minBytes: { label: "At least so many bytes" },
  by: { label: "Who may answer", hint: "Roles or members.", like: "operator" },
  message: { label: "Message" },
  sqs: { label: "Queue" },
  sns: { label: "Topic" },
  attributes: { label: "Attributes" },
  deduplicationId: { label: "Deduplication id" },
  subject: { label: "Subject" },
  source: { label: "Source" },
  type: { label: "Type" },
  detail: { label: "Detail" },
  bus: { label: "Event bus" },
  stateMachine: { label: "State machine" },
  input: { label: "Input" },
  service: { label: "Service", like: "s3" },
  action: { label: "Action", like: "list_buckets" },
  region: { label: "Region" },
  query: { label: "Part of the answer" },
  prefer: { label: "Prefer" },
};

/** The word for a field: by its last names, or made of its own. */
export function wordFor(path: readonly (string | number)[]): Word {
  const names = path.filter((key) => typeof key === "string");
  for (let from = Math.max(0, names.length - 2); from < names.length; from += 1) {
    const word = WORDS[names.slice(from).join(".")];
    if (word) return word;
  }
  const name = names.at(-1) ?? "";
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return { label: words.charAt(0).toUpperCase() + words.slice(1) };
}

const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  gap: { shift: "run it later", skip: "skip it" },
  fold: { first: "run once", both: "run twice" },
  policy: { none: "run none", latest: "run the latest", all: "run all" },
  overlap: {
    allow: "run beside it",
    skip: "skip the new one",
    queue: "wait for its end",
    replace: "cancel it and run",
  },
  backoff: { fixed: "always the same", exponential: "doubled each time", list: "as in a list" },
  guarantee: {
    "at-most-once": "at most once",
    "at-least-once": "at least once",
    "effectively-once": "effectively once",
  },
  onFailure: { finish: "let the others finish", stop: "stop the run" },
  when: {
    all_success: "all succeeded",
    all_failed: "all failed",
    all_done: "all ended",
    one_success: "one succeeded",
    one_failed: "one failed",
    one_done: "one ended",
    none_failed: "none failed",
    none_failed_min_one_success: "none failed, at least one succeeded",
    none_skipped: "none was skipped",
    always: "anything",
  },
};

export function valueInWords(path: readonly (string | number)[], value: unknown): string {
  return VALUES[String(path.at(-1) === "catchup" ? "policy" : path.at(-1))]?.[String(value)] ?? String(value);
}

const KINDS: Readonly<Record<string, string>> = {
  command: "Command",
  python: "Python function",
  http: "Web call (HTTP)",
  container: "Container",
  lambda: "AWS Lambda function",
  sqs: "Message to an SQS queue",
  sns: "Message to an SNS topic",
  event: "Event on EventBridge",
  stateMachine: "AWS Step Functions",
  awsSdk: "Call of the AWS API",
  job: "Another job",
  wait: "Wait",
  sensor: "Wait for something (sensor)",
  approval: "Ask a person (approval)",
  external: "External worker",
};

export function kindInWords(kind: string): string {
  return KINDS[kind] ?? kind;
}
