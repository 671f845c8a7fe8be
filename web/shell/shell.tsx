// The frame around every page: sidebar, bars of small screens, the strip that says the connection is lost.

import { type ReactNode, useState } from 'react'
import { signOut } from '../data/client.ts'
import { startFeed, useConnection } from '../data/feed.ts'
import { useFreshLists, useInboxItems, useLists } from '../data/server.ts'
import { isFile } from '../file/answers.ts'
import { Button, IconButton } from '../parts/button.tsx'
import { Icon, type IconName, Mark } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { Toast } from '../parts/toast.tsx'
import { useNow } from '../window/clock.ts'
import { useKeys } from '../window/keys.ts'
import { navigate, type Route } from '../window/router.ts'
import { clock } from '../words/format.ts'
import { FindDialog } from './find.tsx'
import { KeysDialog } from './keys-dialog.tsx'
import { LiveSign, ThemeButton } from './shell-signs.tsx'
import { Sidebar } from './sidebar.tsx'

interface ShellProps {
  readonly route: Route
  readonly children: ReactNode
}

export function Shell(props: ShellProps): ReactNode {
  return isFile ? <FileShell {...props} /> : <ServerShell {...props} />
}

/** Around a run that was exported: there is nothing beside it, and nothing can be started. */
function FileShell({ children }: ShellProps): ReactNode {
  return (
    <div className="app app-file">
      <main className="main" id="main" tabIndex={-1}>
        <div className="filebar">
          <span className="brand">
            <Mark />
            legate
          </span>
          <span className="meta cut grow">A run as it was when it was exported</span>
          <ThemeButton />
        </div>
        {children}
      </main>
      <Toast />
    </div>
  )
}

function ServerShell({ route, children }: ShellProps): ReactNode {
  const [dialog, setDialog] = useState<'keys' | 'find' | null>(null)
  useLists(route.page === 'inbox')
  useFreshLists()
  useKeys({
    '?': () => setDialog('keys'),
    '/': () => setDialog('find'),
    n: () => navigate('/new'),
    'g i': () => navigate('/'),
  })
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place of the page, without a place of its own */}
      <a className="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <div className="app">
        <Sidebar route={route} onKeys={() => setDialog('keys')} onFind={() => setDialog('find')} />
        <main className="main" id="main" tabIndex={-1}>
          <TopBar route={route} />
          <LostStrip />
          {children}
        </main>
      </div>
      <TabBar route={route} />
      {dialog === 'keys' ? <KeysDialog onClose={() => setDialog(null)} /> : null}
      {dialog === 'find' ? <FindDialog onClose={() => setDialog(null)} /> : null}
      <Toast />
    </>
  )
}

function focusMain(event: { preventDefault(): void }): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

/** Above a page on small screens. */
function TopBar({ route }: { readonly route: Route }): ReactNode {
  return (
    <div className="topbar">
      {route.page === 'inbox' ? (
        <span className="brand">
          <Mark />
          legate
        </span>
      ) : (
        <>
          <Link className="ib" to="/" aria-label="Back to the inbox">
            <Icon name="back" />
          </Link>
          <span className="cut">Inbox</span>
        </>
      )}
      <span className="grow" />
      <LiveSign />
      <ThemeButton />
      <IconButton icon="leave" label="Log out" onClick={signOut} />
    </div>
  )
}

/** Says that the page is not live, and what becomes of it. */
function LostStrip(): ReactNode {
  const connection = useConnection()
  if (connection.kind !== 'lost') return null
  return (
    <div className="strip" role="status">
      <Icon name="offline" />
      <p className="grow">
        <b>Connection lost.</b> This is as of {clock(connection.since)}. Nothing is lost: what you missed comes with the
        next connection. <NextTry at={connection.retryAt} />
      </p>
      <Button isSmall onClick={startFeed}>
        Try now
      </Button>
    </div>
  )
}

function NextTry({ at }: { readonly at: number }): ReactNode {
  const seconds = Math.ceil((at - useNow()) / 1_000)
  return <span aria-hidden="true">{seconds > 0 ? `Trying again in ${seconds} s.` : 'Trying again.'}</span>
}

const TABS: readonly (readonly [to: string, page: Route['page'], icon: IconName, label: string])[] = [
  ['/', 'inbox', 'inbox', 'Inbox'],
  ['/new', 'new', 'plus', 'New run'],
  ['/diff', 'diff', 'compare', 'Compare'],
  ['/ops', 'ops', 'ops', 'Operations'],
]

/** Below a page on small screens. */
function TabBar({ route }: { readonly route: Route }): ReactNode {
  const needs = useInboxItems().value?.length ?? 0
  return (
    <nav className="tabbar" aria-label="Main, small screens">
      {TABS.map(([to, page, icon, label]) => (
        <Link key={to} to={to} aria-current={route.page === page ? 'page' : undefined}>
          <Icon name={icon} />
          {label}
          {page === 'inbox' && needs > 0 ? (
            <span className="count">
              {needs}
              <span className="vh"> need you</span>
            </span>
          ) : null}
        </Link>
      ))}
    </nav>
  )
}
