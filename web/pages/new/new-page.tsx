// New run: a form from the schema of an agent, beside what the run may do and cost. Nothing is sent before it is started.

import { type FormEvent, type KeyboardEvent, type ReactNode, useId, useMemo, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { useRequest } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import type { AgentInfo } from '../../data/types.ts'
import { Button } from '../../parts/button.tsx'
import { Chevron, Hero, Problem, ProblemNote, SkeletonPage } from '../../parts/states.tsx'
import { useTask } from '../../parts/task.ts'
import { navigate, pathOfRun } from '../../window/router.ts'
import '../../styles/new.css'
import { AgentPicker } from './agent-picker.tsx'
import { BeforeStart } from './before-start.tsx'
import { type Field, type FieldValues, fieldsOf, firstEntries, readForm } from './fields.ts'
import { FormField } from './form-field.tsx'

export function NewPage({ agent }: { readonly agent: string | null }): ReactNode {
  const { value, error } = useRequest('agents', async () => (await client.agents()).agents)
  if (value === undefined) return error === null ? <SkeletonPage /> : <Problem error={error} title="No agents" />
  const chosen = agent === null ? value[0] : value.find(({ name }) => name === agent)
  if (chosen === undefined) return <NoAgent name={agent} />
  return (
    <div className="scroll">
      <div className="page">
        <div className="page-h">
          <h1>New run</h1>
        </div>
        <p className="sum">Nothing is sent before you start it.</p>
        <div className="newgrid">
          <NewForm key={chosen.name} agents={value} agent={chosen} />
          <BeforeStart agent={chosen} />
        </div>
      </div>
    </div>
  )
}

function NoAgent({ name }: { readonly name: string | null }): ReactNode {
  if (name !== null)
    return (
      <Hero icon="search" title="No such agent">
        <p>This server has no agent named {name}, or your token may not start it.</p>
      </Hero>
    )
  return (
    <Hero icon="plus" title="No agents yet">
      <p>Start the server with the files of your agents, such as:</p>
      <pre className="cmd">legate serve reviewer.md agents.mjs</pre>
    </Hero>
  )
}

interface FormProps {
  readonly agents: readonly AgentInfo[]
  readonly agent: AgentInfo
}

const LIMITS: readonly Field[] = [
  { name: 'title', label: 'Title', kind: 'line' },
  { name: 'usd', label: 'Dollars at most', kind: 'number' },
  { name: 'tokens', label: 'Tokens at most', kind: 'number', isWhole: true },
].map((field) => ({ hint: null, isOptional: true, choices: [], isWhole: false, ...field }) as Field)

interface Draft {
  readonly entries: FieldValues
  readonly errors: Readonly<Record<string, string>>
}

function NewForm({ agents, agent }: FormProps): ReactNode {
  const fields = useMemo(() => fieldsOf(agent.input), [agent])
  const [draft, setDraft] = useState<Draft>({ entries: firstEntries(agent.input, fields), errors: {} })
  const [more, setMore] = useState<Draft>({ entries: firstEntries(null, LIMITS), errors: {} })
  // Equal keys give one run: a second press of the button starts nothing.
  const [key] = useState(() => crypto.randomUUID())
  const task = useTask()
  const mayStart = useMay('start')
  const isLive = useConnection().kind === 'live'
  const start = async () => {
    const [read, limits] = [readForm(fields, draft.entries), readForm(LIMITS, more.entries)]
    setDraft({ ...draft, errors: 'errors' in read ? read.errors : {} })
    setMore({ ...more, errors: 'errors' in limits ? limits.errors : {} })
    if ('errors' in read || 'errors' in limits) return
    await task.run(async () => {
      const run = await client.run(agent.name, read.input, { ...requestOf(limits.input as Limits), key })
      navigate(pathOfRun(run.conversationId))
    })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void start()
  }
  const pressed = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) submit(event)
  }
  return (
    <form className="form" aria-label="New run" onSubmit={submit} onKeyDown={pressed} noValidate>
      <AgentPicker agents={agents} chosen={agent} />
      <Fields fields={fields} draft={draft} onChange={setDraft} />
      <MoreFields draft={more} onChange={setMore} />
      {task.error === null ? null : <ProblemNote error={task.error} />}
      <div className="barfoot">
        <Button look="primary" type="submit" disabled={task.isBusy || !mayStart || !isLive} keyCap="⌘↵">
          Start run
        </Button>
        {mayStart ? null : <span className="dim">Your token may not start runs.</span>}
      </div>
    </form>
  )
}

interface Limits {
  readonly title?: string
  readonly usd?: number
  readonly tokens?: number
}

function requestOf({ title, ...budget }: Limits) {
  return {
    ...(title === undefined ? {} : { title }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
  }
}

interface FieldsProps {
  readonly fields: readonly Field[]
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
}

function Fields({ fields, draft, onChange }: FieldsProps): ReactNode {
  const { entries, errors } = draft
  return fields.map((field) => (
    <FormField
      key={field.name}
      field={field}
      entry={entries[field.name] ?? ''}
      error={errors[field.name]}
      onChange={(entry) => {
        const { [field.name]: _, ...others } = errors
        onChange({ entries: { ...entries, [field.name]: entry }, errors: others })
      }}
    />
  ))
}

function MoreFields({ draft, onChange }: Omit<FieldsProps, 'fields'>): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  return (
    <div className="disc">
      <button
        type="button"
        className="row mid"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <Chevron />
        Title and limits
      </button>
      <div id={id} className="three" hidden={!isOpen}>
        <Fields fields={LIMITS} draft={draft} onChange={onChange} />
      </div>
    </div>
  )
}
