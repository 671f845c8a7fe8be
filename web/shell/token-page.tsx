import { type FormEvent, type ReactNode, useState } from 'react'
import { type Session, signIn } from '../data/client.ts'
import { reload } from '../data/request.ts'
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
    reload('info')
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
