/** Signing in: with a token on one machine, and with the user pool's own page (code flow with PKCE) on AWS. */

import { answer, api } from "./client";
import { session } from "./session";

export interface SignIn {
  url: string;
  clientId: string;
}

export interface Config {
  signIn: SignIn | null;
}

interface Tokens {
  access_token: string;
  refresh_token?: string;
  expires_in: number;
}

const FLOW = "sweephand.signin";
/** The one address that the user pool comes back to. */
const RETURN = "/";
const RENEW_BEFORE_MS = 5 * 60_000;

let config: Promise<Config> | undefined;

export function configuration(): Promise<Config> {
  config ??= fetch("/config.json").then(async (response) => {
    if (!response.ok) throw new Error("The console's configuration cannot be read: config.json is missing.");
    return (await response.json()) as Config;
  });
  config.catch(() => {
    config = undefined;
  });
  return config;
}

/** With a token that lasts: it is exchanged for a session of an hour, which is what calls carry. */
export async function signInWithToken(token: string, namespace: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token}`, ...(namespace ? { "X-Namespace": namespace } : {}) };
  const opened = await answer(api.POST("/session", { headers }));
  const who = await answer(api.GET("/session", { headers }));
  session.begin({ token: opened.token, expiresAt: Date.parse(opened.expiresAt), namespace: who.namespace }, token);
}

/** Leave for the sign-in page; it comes back to `/` with a code. */
export async function goAndSignIn(signIn: SignIn, to: string): Promise<void> {
  const state = randomText();
  const verifier = randomText();
  sessionStorage.setItem(FLOW, JSON.stringify({ state, verifier, to: isOwn(to) ? to : "/" }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const asked = new URLSearchParams({
    response_type: "code",
    client_id: signIn.clientId,
    redirect_uri: location.origin + RETURN,
    scope: "openid",
    state,
    code_challenge_method: "S256",
    code_challenge: base64url(new Uint8Array(digest)),
  });
  location.assign(`${signIn.url}/oauth2/authorize?${asked}`);
}

/** Back from the sign-in page: exchange the code; where to go on. */
export async function finishSignIn(signIn: SignIn, query: URLSearchParams): Promise<string> {
  const kept = sessionStorage.getItem(FLOW);
  sessionStorage.removeItem(FLOW);
  const flow = JSON.parse(kept ?? "null") as { state: string; verifier: string; to: string } | null;
  const code = query.get("code");
  if (!flow || !code || query.get("state") !== flow.state) {
    throw new Error(query.get("error_description") ?? "This sign-in was not begun here: begin again.");
  }
  const tokens = await tokensFor(signIn, {
    grant_type: "authorization_code",
    code,
    redirect_uri: location.origin + RETURN,
    code_verifier: flow.verifier,
  });
  const headers = { Authorization: `Bearer ${tokens.access_token}` };
  const who = await answer(api.GET("/session", { headers }));
  session.begin({
    token: tokens.access_token,
    refreshToken: tokens.refresh_token,
    expiresAt: Date.now() + tokens.expires_in * 1000,
    namespace: who.namespace,
  });
  return flow.to;
}

/** Renew the session shortly before it ends, for as long as there is something to renew it with. */
export function keepSignedIn(): () => void {
  const timer = window.setInterval(() => {
    const kept = session.kept();
    if (!kept || kept.expiresAt - Date.now() > RENEW_BEFORE_MS) return;
    void renew().catch(() => {
      if (kept.expiresAt <= Date.now()) session.end(); // otherwise there is time to try again
    });
  }, 30_000);
  return () => window.clearInterval(timer);
}

async function renew(): Promise<void> {
  const kept = session.kept();
  const lasting = session.lasting();
  if (lasting) {
    const opened = await answer(api.POST("/session", { headers: { Authorization: `Bearer ${lasting}` } }));
    session.renewed(opened.token, Date.parse(opened.expiresAt));
  } else if (kept?.refreshToken) {
    const { signIn } = await configuration();
    if (!signIn) return;
    const tokens = await tokensFor(signIn, { grant_type: "refresh_token", refresh_token: kept.refreshToken });
    session.renewed(tokens.access_token, Date.now() + tokens.expires_in * 1000, tokens.refresh_token);
  } else if (kept && kept.expiresAt <= Date.now()) {
    session.end();
  }
}

export async function signOut(): Promise<void> {
  session.end();
  const { signIn } = await configuration();
  if (!signIn) return;
  const asked = new URLSearchParams({ client_id: signIn.clientId, logout_uri: `${location.origin}/` });
  location.assign(`${signIn.url}/logout?${asked}`);
}

async function tokensFor(signIn: SignIn, form: Record<string, string>): Promise<Tokens> {
  const response = await fetch(`${signIn.url}/oauth2/token`, {
    method: "POST",
    body: new URLSearchParams({ client_id: signIn.clientId, ...form }),
  });
  if (!response.ok) throw new Error("The sign-in could not be finished: begin again.");
  return (await response.json()) as Tokens;
}

/** Only a page of ours: an address that somebody made up leads nowhere else. */
function isOwn(to: string): boolean {
  return to.startsWith("/") && !to.startsWith("//") && !to.includes("\\");
}

function randomText(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
