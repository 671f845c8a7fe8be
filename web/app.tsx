// The page: who we are first, then the shell, then the page of the place.

import { lazy, type ReactNode, Suspense, useEffect } from 'react'
import { client, hasToken, namedRun, useOfferedToken, useSession } from './data/client.ts'
import { beginFeed, restWhileHidden, stopFeed } from './data/feed.ts'
import { reload } from './data/request.ts'
import { useServerInfo } from './data/server.ts'
import { isFile } from './file/answers.ts'
import { InboxPage } from './pages/inbox/inbox-page.tsx'
import { Boundary } from './parts/boundary.tsx'
import { Hero, HomeLink, Problem, SkeletonPage } from './parts/states.tsx'
import { say } from './parts/toast.tsx'
import { Shell } from './shell/shell.tsx'
import { OfferPage, TokenPage } from './shell/token-page.tsx'
import { navigate, pathOfRun, type Route, routeOf, usePlace } from './window/router.ts'

const ThreadPage = lazy(async () => ({ default: (await import('./pages/thread/thread-page.tsx')).ThreadPage }))
const GraphPage = lazy(async () => ({ default: (await import('./pages/graph/graph-page.tsx')).GraphPage }))
const TimePage = lazy(async () => ({ default: (await import('./pages/time/time-page.tsx')).TimePage }))
const NewPage = lazy(async () => ({ default: (await import('./pages/new/new-page.tsx')).NewPage }))
const DiffPage = lazy(async () => ({ default: (await import('./pages/diff/diff-page.tsx')).DiffPage }))
const OpsPage = lazy(async () => ({ default: (await import('./pages/ops/ops-page.tsx')).OpsPage }))

export function App(): ReactNode {
  const session = useSession()
  const offered = useOfferedToken()
  const info = useServerInfo()
  const { path } = usePlace()
  const isReady = info.value !== undefined
  // Whoever has a token most likely has the right one: nothing waits for the server to say so.
  const isShown = offered === null && (isReady || hasToken())
  useEffect(() => {
    if (!isShown) return
    beginFeed()
    restWhileHidden()
    if (namedRun !== null) openRun(namedRun)
    return stopFeed
  }, [isShown])
  if (offered !== null) return <OfferPage token={offered} />
  if (session === 'no-token' || session === 'refused') return <TokenPage session={session} />
  if (info.value === undefined && info.error !== null) {
    return (
      <main className="main alone" id="main">
        <Problem title="The server does not answer" error={info.error} onRetry={() => reload('info')} />
      </main>
    )
  }
  const route = routeOf(path)
  return (
    <Shell route={route}>
      {isShown ? (
        <Suspense fallback={<SkeletonPage />}>
          <Boundary key={path} what="This page">
            <Page route={route} />
          </Boundary>
        </Suspense>
      ) : (
        <SkeletonPage />
      )}
    </Shell>
  )
}

function openRun(runId: string): void {
  client.look(runId).then(
    ({ conversationId }) => navigate(pathOfRun(conversationId), { replace: true }),
    () => say('The run of this link is not here, or not yours to see.'),
  )
}

/** What a file shows: its run. */
const IN_FILES: ReadonlySet<Route['page']> = new Set(['thread', 'graph', 'time'])

/** Another value in the path is another page: nothing of the one before it stays. */
function Page({ route: { page, values } }: { readonly route: Route }): ReactNode {
  const [first = '', second = ''] = values
  if (isFile && !IN_FILES.has(page)) return <LostPage />
  switch (page) {
    case 'inbox':
      return <InboxPage />
    case 'new':
      return <NewPage key={first} agent={first === '' ? null : first} />
    case 'thread':
      return <ThreadPage key={first} conversationId={first} />
    case 'graph':
      return <GraphPage key={first} conversationId={first} />
    case 'time':
      return <TimePage key={first} conversationId={first} />
    case 'diff':
      return (
        <DiffPage key={`${first} ${second}`} left={first === '' ? null : first} right={second === '' ? null : second} />
      )
    case 'ops':
      return <OpsPage />
    default:
      return <LostPage />
  }
}

function LostPage(): ReactNode {
  return (
    <Hero icon="search" title="There is no such page">
      <p>The address may have been cut off. Each run, node and moment has an address of its own.</p>
      <HomeLink />
    </Hero>
  )
}
