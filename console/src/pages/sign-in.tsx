/** Signing in: with a token, and on AWS with the user pool's page first. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { configuration, finishSignIn, goAndSignIn, type SignIn, signInWithToken } from "../api/signin";
import { useTitle } from "../lib/hooks";
import { TextField } from "../ui/form";
import { Button, Found, Loading, Wrong } from "../ui/parts";

export function SignInPage() {
  useTitle("Sign in");
  const config = useQuery({ queryKey: ["config"], queryFn: configuration, staleTime: Number.POSITIVE_INFINITY });
  return (
    <main className="sign-in">
      <section className="sheet" aria-labelledby="sign-in">
        <header>
          <h1 className="row" id="sign-in">
            <img src="/hand.svg" alt="" width={28} height={28} />
            Sign in to Sweephand
          </h1>
        </header>
        <div className="inside stack">
          <Found query={config} lines={3}>
            {({ signIn }) => (signIn ? <WithPool signIn={signIn} /> : <WithToken />)}
          </Found>
        </div>
      </section>
    </main>
  );
}

function WithToken() {
  const [token, setToken] = useState("");
  const [namespace, setNamespace] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await signInWithToken(token.trim(), namespace.trim());
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <TextField
        label="Token"
        type="password"
        required
        autoFocus
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={
          <>
            The admin's is in <code>admin.token</code> in the data folder, and was printed when Sweephand started.
          </>
        }
      />
      <TextField
        label="Namespace"
        value={namespace}
        placeholder="the token's own"
        onChange={(event) => setNamespace(event.target.value)}
      />
      {error !== null && <Wrong error={error} />}
      <Button type="submit" kind="primary" busy={busy} disabled={!token.trim()}>
        Sign in
      </Button>
    </form>
  );
}

function WithPool({ signIn }: { signIn: SignIn }) {
  const [, go] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const [query] = useState(() => new URLSearchParams(location.search));
  const isBack = query.has("state");
  useEffect(() => {
    if (!isBack) return;
    finishSignIn(signIn, query).then(
      (to) => go(to, { replace: true }),
      (caught) => {
        history.replaceState(null, "", "/");
        setError(caught);
      },
    );
  }, [isBack, query, signIn, go]);
  if (isBack && error === null) return <Loading lines={2} />;
  return (
    <>
      {error !== null && <Wrong error={error} />}
      <Button
        kind="primary"
        onClick={() => void goAndSignIn(signIn, location.pathname + location.search).catch(setError)}
      >
        Continue to the sign-in page
      </Button>
      <details>
        <summary>Sign in with a token</summary>
        <WithToken />
      </details>
    </>
  );
}
