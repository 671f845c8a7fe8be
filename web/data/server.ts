// What the whole page knows: who we are, what needs us, which runs there are.

import { useEffect } from 'react'
import { Cell, useCell } from '../window/cell.ts'
import { client } from './client.ts'
import { onChange } from './feed.ts'
import { type RequestState, reload, useRequest } from './request.ts'
import type { InboxItem, RunInfo, ServerInfo } from './types.ts'

const MOST_OPEN = 200
const RECENT = 60
const MOST_ITEMS = 200
/** Lists are asked for again so often at most, however much happens. */
const AGAIN_MS = 600

export function useServerInfo(): RequestState<ServerInfo> {
  return useRequest('info', () => client.info())
}

/** True where the token has the scope. */
export function useMay(scope: ServerInfo['principal']['scopes'][number]): boolean {
  const scopes = useServerInfo().value?.principal.scopes ?? []
  return scopes.includes(scope) || scopes.includes('admin')
}

/** Lists of the sidebar wait until the page itself has asked for what it shows. */
const isSettled = new Cell(false)
const SETTLED_MS = 500

/** Asks for the lists, now or a moment later. */
export function useLists(isNow: boolean): void {
  useEffect(() => {
    if (isNow) return isSettled.set(true)
    const timer = setTimeout(() => isSettled.set(true), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [isNow])
}

function useListKey(name: string): string | null {
  return useCell(isSettled) ? `lists ${name}` : null
}

/** Everything that needs a person. */
export function useInboxItems(): RequestState<readonly InboxItem[]> {
  return useRequest(useListKey('inbox'), async () => (await client.inbox({ limit: MOST_ITEMS })).items)
}

/** The runs that have not ended. */
export function useOpenRuns(): RequestState<readonly RunInfo[]> {
  return useRequest(useListKey('open'), async () => (await client.runs({ state: 'open', limit: MOST_OPEN })).runs)
}

/** The newest runs, open or ended. */
export function useRecentRuns(): RequestState<readonly RunInfo[]> {
  return useRequest(useListKey('recent'), async () => (await client.runs({ limit: RECENT })).runs)
}

/** US dollars of today over all runs that we see; undefined where we may not know, null where a price is unknown. */
export function useSpentToday(): number | null | undefined {
  const day = new Date().toISOString().slice(0, 10)
  const { value } = useRequest(
    useListKey(`spent ${day}`),
    async () => (await client.usageByDay({ from: day, to: day })).usage,
  )
  if (value === undefined) return undefined
  const priced = value as readonly { readonly usd?: number | null }[]
  return priced.reduce<number | null>((sum, { usd = 0 }) => (sum === null || usd === null ? null : sum + usd), 0)
}

/** Keeps the lists fresh while the component is there: whenever a tree went on. */
export function useFreshLists(): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const leave = onChange(() => {
      timer ??= setTimeout(() => {
        timer = undefined
        reload('lists ')
      }, AGAIN_MS)
    })
    return () => {
      clearTimeout(timer)
      leave()
    }
  }, [])
}
