// What the model of a node saw: the request, made again from the record. Nothing is called.

import { type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { NodeAnswer, ShownRequest } from '../../data/types.ts'
import { Drawer } from '../../parts/dialog.tsx'
import { AgentPath } from '../../parts/figures.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LongPre } from '../../parts/long-text.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { pretty, textOf } from '../../words/content.ts'
import { count, modelName } from '../../words/format.ts'
import { jsonText } from '../../words/json-text.ts'

interface SawDrawerProps {
  readonly nodeId: string
  readonly path: readonly string[]
  readonly onClose: () => void
}

const TABS = ['Messages', 'Tools', 'Settings', 'As sent'] as const
type Tab = (typeof TABS)[number]
type Request = ShownRequest['request']

export function SawDrawer({ nodeId, path, onClose }: SawDrawerProps): ReactNode {
  const [tab, setTab] = useState<Tab>('Messages')
  const { value, error } = useRequest(`saw ${nodeId}`, () => client.requestOf(nodeId))
  const counts = { Messages: value?.request.messages.length, Tools: value?.request.tools.length }
  const bar = (
    <div className="tabs" role="tablist" aria-label="Parts of the request">
      {TABS.map((name) => (
        <button key={name} type="button" role="tab" aria-selected={name === tab} onClick={() => setTab(name)}>
          {name}
          {name === 'Messages' || name === 'Tools' ? <span className="count">{counts[name] ?? ''}</span> : null}
        </button>
      ))}
    </div>
  )
  const line = (
    <>
      <AgentPath path={path} />
      <span className="meta">{value?.model == null ? '' : modelName(value.model)}</span>
    </>
  )
  return (
    <Drawer title="What the model saw" line={line} bar={bar} label={tab} onClose={onClose}>
      {error === null ? null : <ProblemNote error={error} />}
      {value === undefined ? null : <RequestTab tab={tab} shown={value} nodeId={nodeId} />}
    </Drawer>
  )
}

interface RequestTabProps {
  readonly tab: Tab
  readonly shown: ShownRequest
  readonly nodeId: string
}

function RequestTab({ tab, shown, nodeId }: RequestTabProps): ReactNode {
  const { request } = shown
  if (tab === 'Tools') return <Tools tools={request.tools} />
  if (tab === 'Settings') return <pre className="cmd">{jsonText(settingsOf(shown))}</pre>
  if (tab === 'As sent') return <LongPre className="cmd" text={jsonText(request)} />
  return (
    <>
      <Exactness shown={shown} />
      <Summaries nodeId={nodeId} />
      {request.messages.map((message, at) => (
        <MessageView key={`${at} ${message.role}`} message={message} />
      ))}
    </>
  )
}

function settingsOf({ model, request }: ShownRequest): object {
  return {
    model,
    ...request.settings,
    ...(request.outputSchema === null ? {} : { outputSchema: request.outputSchema }),
  }
}

/** How far the request is the one that was sent. */
function Exactness({ shown: { isChanged, isHooked } }: { readonly shown: ShownRequest }): ReactNode {
  const words =
    isChanged || isHooked
      ? `Made again from the record.${isChanged ? ' The agent was changed since: instructions and tools are those of now.' : ''}${isHooked ? ' Extensions may have changed what was sent.' : ''}`
      : 'This is what was sent, made again from the record. Nothing was called.'
  return (
    <p className="note note-plain">
      <Icon name="eye" />
      {words}
    </p>
  )
}

async function summariesIn(nodeId: string) {
  const found: NodeAnswer[] = []
  for (let from: string | number | null = 0; typeof from === 'number'; ) {
    const page: Awaited<ReturnType<typeof client.context>> = await client.context(nodeId, from === 0 ? {} : { from })
    found.push(...page.nodes.filter(isSummary))
    from = page.next
  }
  return found
}

/** Which summaries the model read instead of what they stand for. */
function Summaries({ nodeId }: { readonly nodeId: string }): ReactNode {
  const summaries = useRequest(`context ${nodeId}`, () => summariesIn(nodeId)).value ?? []
  return summaries.map((node) => (
    <div key={node.id} className="msg-fold">
      <div className="msg-h">
        <Icon name="stack" />
        <span className="role">A summary stands for earlier turns</span>
      </div>
      <p className="mid">{textOf(node.output.content ?? node.input.content ?? null)}</p>
    </div>
  ))
}

function isSummary({ kind, purpose }: NodeAnswer): boolean {
  return kind === 'summary' || purpose === 'summarize'
}

function MessageView({ message }: { readonly message: Request['messages'][number] }): ReactNode {
  const calls = 'calls' in message && Array.isArray(message.calls) ? message.calls : []
  const text = textOf(message.content)
  return (
    <div className="msg">
      <div className="msg-h">
        <span className="role">{ROLES[message.role] ?? message.role}</span>
        <span className="grow" />
        <span className="meta">{count(text.length, 'character')}</span>
      </div>
      {text === '' ? null : <LongPre text={pretty(text)} />}
      {calls.map(({ id, name, input }) => (
        <LongPre key={id} text={`${name} ${jsonText(input)}`} />
      ))}
    </div>
  )
}

const ROLES: Readonly<Record<string, string>> = {
  system: 'System',
  user: 'Said to it',
  developer: 'Developer',
  assistant: 'It said',
  agent: 'It said',
  tool: 'A tool gave',
}

function Tools({ tools }: { readonly tools: Request['tools'] }): ReactNode {
  if (tools.length === 0) return <p className="dim">It was offered no tools.</p>
  return tools.map((tool) => (
    <div key={tool.name} className="msg">
      <div className="msg-h">
        <code>{tool.name}</code>
      </div>
      <p className="mid">{tool.description}</p>
      <pre>{jsonText(tool.inputSchema)}</pre>
    </div>
  ))
}
