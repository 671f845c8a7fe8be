// Written as a user writes, and checked by the compiler against what is published: see ../built.test.ts.
import { agent, createRuntime, type RunOutcome, tool } from 'legate'
import {
  askTools,
  backgroundSubagents,
  generalWorker,
  joinSpawned,
  makeSubagentTool,
  type SpawnedAgent,
} from 'legate/background'
import { jsonSession, jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { checkSubagentContract, scriptedModel } from 'legate/testing'
import { attribute, toolkit } from 'legate/tools'
import { z } from 'zod'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<T extends true>(): T | undefined {
  return undefined
}

interface Found {
  findings: { title: string; score: number }[]
}

const Finding = z.object({ title: z.string(), score: z.number().default(1) })
const researcher = agent({
  name: 'researcher',
  instructions: 'You research.',
  model: scriptedModel(['{}']),
  input: z.object({ topic: z.string().min(3), depth: z.number().default(2) }),
  output: z.object({ findings: z.array(Finding) }),
})
const plain = agent({ name: 'plain', instructions: '' })

export async function runs(): Promise<void> {
  const runtime = createRuntime({ store: sqliteStore(':memory:') })
  const { output } = await runtime.run(researcher, { topic: 'QUIC' }).result
  is<Same<typeof output, Found | null>>()
  const direct = await researcher.generate({ topic: 'QUIC', depth: 3 }, { grant: { deny: ['tool:x'] }, tools: {} })
  is<Same<typeof direct.output, Found>>()
  await researcher.generate('in words')
  await researcher.generate({ messages: [{ role: 'user', content: 'in messages' }] })
  const text = await plain.generate('Hello.')
  is<Same<typeof text.output, null>>()
  // @ts-expect-error: the topic is a text
  runtime.run(researcher, { topic: 5 })
  // @ts-expect-error: there is no topic
  await researcher.generate({ depth: 3 })
  // @ts-expect-error: an agent without an input takes a text
  runtime.run(plain, { topic: 'QUIC' })
  // @ts-expect-error: there is no such status
  const status: RunOutcome['status'] = 'done'
  await using other = createRuntime({ store: jsonStore('folder') })
  await other.idle()
  for await (const event of runtime.run(host, 'Go.')) {
    if (event.type === 'text-delta') event.text.trim()
    if (event.type === 'delegation-end') event.status satisfies string
    // @ts-expect-error: an end has no text
    if (event.type === 'run-end') event.text
  }
  const talk = await runtime.conversation(status)
  await talk.observe('Something happened.')
  await checkSubagentContract(researcher)
}

export async function spawns(): Promise<void> {
  const runtime = createRuntime()
  const spawned = await runtime.spawn(researcher, { topic: 'QUIC' })
  is<Same<typeof spawned, SpawnedAgent<Found>>>()
  const waited = await spawned.wait({ timeoutMs: 5 })
  is<Same<typeof waited, RunOutcome<Found> | null>>()
  const { outcomes } = await joinSpawned([spawned, spawned], 2, { losers: 'cancel', timeoutMs: 5 })
  is<Same<typeof outcomes, readonly (RunOutcome<Found> | null)[]>>()
  // @ts-expect-error: there is no topic
  await runtime.spawn(researcher, {})
}

const tenant = attribute<{ readonly id: string }>('tenant')

const search = tool({
  description: 'Searches.',
  input: z.object({ q: z.string() }),
  execute: async ({ q }, context) => {
    const found = await context.delegate(researcher, { topic: q })
    is<Same<typeof found.output, Found | null>>()
    // @ts-expect-error: there is no topic
    await context.delegate(researcher, { q })
    return tenant.in(context)?.id ?? q
  },
})

const host = hostOf()

function hostOf() {
  return agent({
    name: 'host',
    instructions: '',
    model: scriptedModel([]),
    tools: { search, ...backgroundSubagents({ agents: { plain } }), ...askTools() },
    subagents: {
      research: {
        agent: researcher,
        presets: { depth: 3 },
        briefing: { mode: 'fork', tokens: 100 },
        memory: 'session',
      },
      talk: {
        agent: plain,
        session: { store: jsonSession('folder'), ttlMs: 5, max: 2 },
        forwardEvents: ['text-delta'],
        streamOptions: { incremental: false },
        onParentClose: 'abandon',
        onNameClash: 'rename',
        concurrency: 2,
        timeoutMs: 5,
        retries: 1,
      },
      late: () => plain,
    },
    toolkit: toolkit({ groups: { experts: { description: 'E', active: false, subagents: [generalWorker()] } } }),
  })
}

export function mistakes(): void {
  // @ts-expect-error: it is forwardEvents
  agent({ name: 'x', instructions: '', subagents: { a: { agent: plain, forwardEvent: true } } })
  // @ts-expect-error: an agent needs instructions
  agent({ name: 'x' })
  // @ts-expect-error: there is no such mode
  agent({ name: 'x', instructions: '', briefing: 'everything' })
  // @ts-expect-error: a spec has a name
  makeSubagentTool(researcher, {}, { host: { name: 'host' } })
  const { register } = makeSubagentTool(researcher, { name: 'r' }, { host: { name: 'host' }, ephemeralMemory: false })
  register.name satisfies string
  tenant.of({ id: 'acme' }) satisfies { readonly [name: string]: { readonly id: string } }
}
