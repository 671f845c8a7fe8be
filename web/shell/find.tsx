import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import { client } from '../data/client.ts'
import { useRequest } from '../data/request.ts'
import { useOpenRuns, useRecentRuns } from '../data/server.ts'
import type { AgentInfo, RunInfo } from '../data/types.ts'
import { Sheet } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { Shape } from '../parts/state.tsx'
import { say } from '../parts/toast.tsx'
import { navigate, pathOfRun } from '../window/router.ts'
import { shortId } from '../words/format.ts'
import { shownInfo } from '../words/shown.ts'
import { titleOf } from './sidebar.tsx'

const MOST_FOUND = 12
const WHOLE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Something that was found, and where it is. */
interface FoundPlace {
  readonly key: string
  readonly to: string
  readonly sign: ReactNode
  readonly words: string
  readonly detail: string
}

/** Finds runs by title, agent or id, and agents by name. */
export function FindDialog({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const found = useFound(text.trim().toLowerCase())
  const go = (to: string) => {
    onClose()
    navigate(to)
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter') {
      event.preventDefault()
      const { to } = found[at] ?? {}
      if (to !== undefined) go(to)
      else if (WHOLE_ID.test(text.trim())) void openId(text.trim(), go)
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    setAt(Math.max(0, Math.min(found.length - 1, at + step)))
  }
  return (
    <Sheet title="Find" onClose={onClose}>
      <label className="field">
        <span className="vh">A run, an agent or an id</span>
        <input
          className="in"
          data-focus
          role="combobox"
          aria-expanded={found.length > 0}
          aria-controls={list}
          aria-activedescendant={found[at] === undefined ? undefined : `${list}-${at}`}
          placeholder="A run, an agent or an id"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={press}
        />
      </label>
      <div className="find-list" role="listbox" id={list} aria-label="Found" tabIndex={-1}>
        {found.map(({ key, to, sign, words, detail }, index) => (
          <Link key={key} id={`${list}-${index}`} role="option" aria-selected={index === at} to={to} onClick={onClose}>
            {sign}
            <span className="cut grow">{words}</span>
            <span className="meta">{detail}</span>
          </Link>
        ))}
      </div>
      {found.length === 0 ? (
        <p className="dim">Nothing of that name among the newest runs. A whole id finds any.</p>
      ) : null}
    </Sheet>
  )
}

function useFound(text: string): readonly FoundPlace[] {
  const open = useOpenRuns().value ?? []
  const recent = useRecentRuns().value ?? []
  const agents = useRequest('agents', async () => (await client.agents()).agents).value ?? []
  const runs = [...new Map([...open, ...recent].map((run) => [run.rootId, run])).values()]
  return [
    ...runs.filter((run) => isRunLike(run, text)).map(foundRun),
    ...agents.filter(({ name }) => text !== '' && name.toLowerCase().includes(text)).map(foundAgent),
  ].slice(0, MOST_FOUND)
}

function isRunLike(run: RunInfo, text: string): boolean {
  const words = [titleOf(run), run.agent, run.owner ?? '', run.runId, run.conversationId]
  return words.some((word) => word.toLowerCase().includes(text))
}

function foundRun(run: RunInfo): FoundPlace {
  return {
    key: run.rootId,
    to: pathOfRun(run.conversationId),
    sign: <Shape state={shownInfo(run)} />,
    words: titleOf(run),
    detail: `${run.agent} · ${shortId(run.runId)}`,
  }
}

function foundAgent({ name }: AgentInfo): FoundPlace {
  const to = `/new/${encodeURIComponent(name)}`
  return { key: `agent ${name}`, to, sign: <Icon name="plus" />, words: `New run of ${name}`, detail: 'agent' }
}

/** An id may be that of a run, of a node or of a conversation. */
async function openId(id: string, go: (to: string) => void): Promise<void> {
  const tries = [
    async () => pathOfRun((await client.look(id)).conversationId),
    async () => {
      const { rootId } = await client.nodeInfo(id)
      return pathOfRun(rootId, '', id)
    },
    async () => pathOfRun((await client.conversation(id).get()).id),
  ]
  for (const one of tries) {
    const to = await one().catch(() => undefined)
    if (to !== undefined) return go(to)
  }
  say('There is no such id here, or it is not yours to see.')
}
