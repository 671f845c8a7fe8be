import { type FormEvent, type ReactNode, useState } from 'react'
import { refuseOffer, type Session, signIn } from '../data/client.ts'
import { Button } from '../parts/button.tsx'
import { Icon, Mark } from '../parts/icon.tsx'
import { Hero } from '../parts/states.tsx'
import { ThemeButton } from './shell-signs.tsx'

/** One field, the reason, the way back. */
export function TokenPage({ session }: { readonly session: Session }): ReactNode {
  const [token, setToken] = useState('')
  const enter = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim() === '') return
    signIn(token)
  }
  const isRefused = session === 'refused'
  return (
    <main className="main alone" id="main">
      <div className="topbar">
        <span className="brand">
          <Mark />
          legate
        </span>
        <span className="grow" />
        <span className="live live-off">Not signed in</span>
        <ThemeButton />
      </div>
      <Hero icon="key" title="Enter your token">
        <p>
          The server printed a link with your token when it started. Open that link, or paste the link or the token
          here. It stays in this tab.
        </p>
        <form className="form" aria-label="Token" onSubmit={enter}>
          <label className="field">
            <span className="name">Token</span>
            <input
              className={`in mono ${isRefused ? 'in-bad' : ''}`}
              type="password"
              autoComplete="off"
              placeholder="lgt_"
              value={token}
              aria-describedby={isRefused ? 'token-error' : undefined}
              onChange={(event) => setToken(event.target.value)}
            />
          </label>
          {isRefused ? (
            <p className="err" id="token-error">
              <Icon name="close" />
              That token is not known here. It may have been revoked.
            </p>
          ) : null}
          <div className="row">
            <Button look="primary" type="submit">
              Continue
            </Button>
          </div>
        </form>
        <p className="dim">Lost the link? In a terminal of that machine:</p>
        <pre>legate open</pre>
      </Hero>
    </main>
  )
}

/** A link brought another token: who opens it says whether it counts. */
export function OfferPage({ token }: { readonly token: string }): ReactNode {
  return (
    <main className="main alone" id="main">
      <Hero icon="key" title="This link has another token">
        <p>
          You are signed in already. With the token of the link you would be somebody else here: whoever made the link
          could see what you start and answer. Use it if you know where it comes from.
        </p>
        <div className="row">
          <Button look="primary" onClick={refuseOffer}>
            Stay signed in as I am
          </Button>
          <Button onClick={() => signIn(token)}>Use the token of the link</Button>
        </div>
      </Hero>
    </main>
  )
}
