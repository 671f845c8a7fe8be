// A link opens exactly the node, or the run, that it names: at any depth, wherever it is in a long thread.

import { nodesOf, type TreeState } from 'legate/client'
import { useEffect, useRef } from 'react'
import { useOfTree, useTreeSource } from '../../data/tree.ts'
import { navigate, pathOfRun, usePlace } from '../../window/router.ts'
import { focusRow } from '../../window/rows.ts'
import { useThread } from './state/thread-state.ts'

/** How to show a node or a run. */
interface Way {
  /** The conversation in which nobody delegated: the thread to show. */
  readonly top: string
  /** The tasks that lead to it, from there. */
  readonly taskIds: readonly string[]
  /** The node to show. */
  readonly target: string
}

/** The run that nobody delegated, above a run or itself. */
function topRunOf(state: TreeState, runId: string): string {
  const hostId = state.runs.get(runId)?.hostId ?? null
  return hostId === null ? runId : topRunOf(state, hostId)
}

/** The way to a node or run; null where the tree does not have it yet. */
function wayTo(state: TreeState, id: string): Way | null {
  const node = state.nodes.get(id)
  const runId = node?.runId ?? (state.runs.has(id) ? id : undefined)
  if (runId === undefined) return null
  const taskIds: string[] = []
  for (let run = state.runs.get(runId); run?.hostId != null; run = state.runs.get(run.hostId)) {
    const childId = run.id
    const task = nodesOf(state, run.hostId).findLast(({ childIds }) => childIds.includes(childId))
    if (task === undefined) break
    taskIds.unshift(task.nodeId)
  }
  const top = state.runs.get(topRunOf(state, runId))?.conversationId ?? ''
  return { top, taskIds, target: node === undefined ? (taskIds.at(-1) ?? id) : id }
}

const MOST_FRAMES = 90
/** Rows above may grow as they are drawn: the way is gone again for so many frames. */
const SETTLE_FRAMES = 6

/** Shows what the fragment of the address names, once it is known. */
export function useReveal(conversationId: string): void {
  const { fragment } = usePlace()
  const { thread } = useThread()
  const { get } = useTreeSource()
  const isKnown = useOfTree((state) => fragment !== '' && wayTo(state, fragment) !== null)
  const shown = useRef('')
  useEffect(() => {
    if (!isKnown) return
    const way = wayTo(get(), fragment)
    if (way === null || shown.current === `${conversationId} ${fragment} ${way.target}`) return
    shown.current = `${conversationId} ${fragment} ${way.target}`
    if (isElsewhere(get(), way.top, conversationId))
      return navigate(pathOfRun(way.top, '', fragment), { replace: true })
    const isCall = get().nodes.get(way.target)?.call != null
    thread.setOpen(isCall ? [...way.taskIds, way.target] : way.taskIds, true)
    thread.wanted.set(new Set([...way.taskIds, way.target]))
    return bring(way.target)
  }, [fragment, isKnown, conversationId, thread, get])
}

/** True for a node of another lane. A page may show a child alone: then everything below it is here. */
function isElsewhere(state: TreeState, top: string, conversationId: string): boolean {
  const row = state.conversations.get(conversationId)
  const isTop = row === undefined || inList(row.runs).every((id) => state.runs.get(id)?.hostId == null)
  return isTop && top !== '' && top !== conversationId
}

function inList(list: { readonly item: string; readonly rest: unknown } | null): string[] {
  const found: string[] = []
  for (let at = list; at !== null; at = at.rest as typeof list) found.push(at.item)
  return found
}

/** Waits until a row is on the page, and brings it into sight. */
function bring(id: string): () => void {
  let frames = 0
  let settled = 0
  let timer = 0
  const look = () => {
    const row = document.getElementById(`n-${id}`) ?? document.getElementById(`r-${id}`)
    if (row !== null) {
      row.scrollIntoView({ block: row.querySelector('[data-ask]') === null ? 'start' : 'center' })
      if (settled === 0) focusRow(row)
      settled++
    }
    if (frames++ < MOST_FRAMES && settled < SETTLE_FRAMES) timer = requestAnimationFrame(look)
  }
  timer = requestAnimationFrame(look)
  return () => cancelAnimationFrame(timer)
}
