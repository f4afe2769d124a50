/** Where runs, their tasks and their jobs are shown. */

const part = encodeURIComponent;

export function jobPath(job: string, tab = ""): string {
  return `/jobs/${part(job)}${tab && `/${part(tab)}`}`;
}

export function runPath(job: string, run: string, task = ""): string {
  return `/jobs/${part(job)}/runs/${part(run)}${task && `?task=${part(task)}`}`;
}

export function versionsPath(job: string): string {
  return jobPath(job, "versions");
}

export interface RunFilters {
  state?: string;
  job?: string;
  tag?: string;
  from?: string;
  to?: string;
}

/** The list of runs across jobs, narrowed. */
export function runsPath(filters: RunFilters = {}): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value)).toString();
  return `/runs${query && `?${query}`}`;
}

/** The run of another job that the API names as `job/run` or `job/run/task`. */
export function namedRun(text: string): { job: string; run: string; task: string } | null {
  const [job, run, task = ""] = text.split("/");
  return job && run ? { job, run, task } : null;
}
