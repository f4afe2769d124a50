/** The roles, and what each may do. */

export const ROLES = [
  { value: "viewer", label: "viewer: sees everything" },
  { value: "operator", label: "operator: also runs, cancels, pauses, pulls work" },
  { value: "editor", label: "editor: also changes jobs and what they share" },
  { value: "admin", label: "admin: also decides about members, tokens and limits" },
] as const;
