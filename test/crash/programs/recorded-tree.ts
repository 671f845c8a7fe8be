import type { agent, tool } from 'legate'
import type { scriptedModel } from 'legate/testing'
import type { z } from 'zod'

interface Parts {
  readonly agent: typeof agent
  readonly tool: typeof tool
  readonly scriptedModel: typeof scriptedModel
  readonly z: typeof z
  /** Ends the process, if this is where it is to end. */
  die(at: string): void
  effect(line: string): void
}

/** A host, two children and their tools, which may die at several places. */
export function recordedTree(parts: Parts) {
  const Input = parts.z.object({ n: parts.z.number() })
  const look = parts.tool({
    description: 'Looks.',
    input: Input,
    effect: 'pure',
    execute: ({ n }) => {
      parts.effect(`look ${n}`)
      parts.die(`look ${n}`)
      return { seen: n }
    },
  })
  const pay = parts.tool({
    description: 'Pays.',
    input: Input,
    execute: ({ n }) => {
      parts.effect(`pay ${n}`)
      parts.die(`pay ${n}`)
      return `paid ${n}`
    },
  })
  const child = parts.agent({
    name: 'child',
    instructions: 'You look and pay.',
    input: Input,
    tools: { look, pay },
    model: parts.scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
      const { n } = JSON.parse(String(messages.find(({ role }) => role === 'user')?.content)) as { n: number }
      parts.die(`child ${n} ${results.length}`)
      if (results.length === 0) return { calls: [{ id: 'l', name: 'look', input: { n } }] }
      if (results.length === 1) return { calls: [{ id: 'p', name: 'pay', input: { n } }] }
      return { chunks: results }
    }),
  })
  return parts.agent({
    name: 'host',
    instructions: 'You delegate.',
    subagents: { child },
    model: parts.scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
      parts.die(`host ${results.length}`)
      if (results.length > 0) return results.join(' | ')
      return { calls: [1, 2].map((n) => ({ id: `c${n}`, name: 'child', input: { n } })) }
    }),
  })
}
