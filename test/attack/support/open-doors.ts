import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type AnyAgent, type Json, type Tool, tool } from 'legate'
import { openSubagents } from 'legate/recipe'
import type { Script } from 'legate/testing'
import type { Door, HostIn, Try } from './door.ts'

/** Ways to a worker that a model describes: by a file that says what it wants for itself, or in words. */
export function openDoors(runHost: HostIn): readonly Door[] {
  const door = (name: string, way: Way): Door => ({
    name,
    depth: 1,
    hasOffer: false,
    ...(way.isNamed ? {} : { isNamed: false }),
    open: (attempt) => openWith(attempt, way, runHost),
  })
  return [
    door('the tool subagent, with a file', { script: byFile, isNamed: true }),
    door('the tool subagent, in words', { script: inWords, isNamed: false }),
    door('the tool delegate, in the background, with a file', { script: inBackground, isNamed: true }),
  ]
}

interface Way {
  readonly script: (attempt: Try) => Script
  /** Is the child called `worker`? */
  readonly isNamed: boolean
}

async function openWith(attempt: Try, { script }: Way, runHost: HostIn): Promise<void> {
  const cwd = mkdtempSync(path.join(tmpdir(), 'legate-door-'))
  const worker = attempt.worker.make('message')
  writeFileSync(path.join(cwd, 'worker.md'), fileOf(attempt))
  const tools = {
    ...Object.fromEntries(worker.tools),
    leaf: delegating(attempt.worker.leaf),
    ...openSubagents({ cwd, surfaces: ['subagent', 'delegate'], subRecipes: { worker: 'worker.md' } }),
  }
  try {
    await runHost(attempt, { script: script(attempt), rest: { tools }, models: { 'dear/model': modelOf(worker) } })
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}

/** A child has the tools of its host, and what they start is a child of the child. */
function delegating(leaf: AnyAgent): Tool {
  return tool({
    description: 'Asks the leaf.',
    input: { type: 'object' },
    execute: async (_input, { delegate }) => {
      await delegate(leaf, 'x' as never)
      return 'asked'
    },
  }) as Tool
}

/** An agent file in our own words, with the grant and the budget that the worker asks for. */
function fileOf({ worker: { parts } }: Try): string {
  const wish = { ...(parts.grant && { grant: parts.grant }), ...(parts.budget && { budget: parts.budget }) }
  const lines = Object.entries(wish).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
  return `---\nname: worker\ndescription: Works.\nmodel: dear/model\n${lines.join('')}---\nWork.\n`
}

function modelOf(worker: AnyAgent): never {
  return (worker as unknown as { readonly model: never }).model
}

function byFile({ smuggled }: Try): Script {
  return once('subagent', { ...smuggled, subrecipe: 'worker', instructions: 'probe' })
}

function inWords({ smuggled }: Try): Script {
  return once('subagent', { ...smuggled, instructions: 'probe', settings: { model: 'dear/model' } })
}

/** The host waits for it, so that the whole tree has ended with the host. */
function inBackground({ smuggled }: Try): Script {
  return ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const [id] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(results[0] ?? '') ?? []
    if (results.length > 1 || (results.length === 1 && id === undefined)) return 'done'
    if (id !== undefined) return { calls: [{ name: 'load', input: { source: id } }] }
    const input = { ...smuggled, source: 'worker', instructions: 'probe', async: true }
    return { calls: [{ name: 'delegate', input }] }
  }
}

function once(name: string, input: { readonly [key: string]: Json }): Script {
  return ({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name, input }] })
}
