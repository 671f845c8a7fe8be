import type { Run } from 'legate'
import type { RunField } from 'legate/fields'
import type { Model, ModelRequest, Part } from 'legate/models'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'

export const Plan = z.object({
  thinking: z.string(),
  tasks: z.array(z.object({ title: z.string(), hours: z.number().max(8) })),
  reply: z.string(),
})

export const PLAN =
  '{"thinking":"two things","tasks":[{"title":"pack","hours":3},{"title":"drive","hours":5}],"reply":"Go é."}'

/** A model that says what it is told to, when it is told to: `say` a piece, `end` the answer, `fail` it. */
export function heldModel() {
  const requests: ModelRequest[] = []
  const queue: (Part | Error)[] = []
  let next = makeGate()
  const put = (part: Part | Error) => {
    queue.push(part)
    next.open()
    next = makeGate()
  }
  const take = async (signal: AbortSignal): Promise<Part | Error> => {
    signal.throwIfAborted()
    const { opened } = next
    const part = queue.shift()
    if (part !== undefined) return part
    await Promise.race([opened, new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))])
    return take(signal)
  }
  const model: Model = {
    id: 'held/model',
    async *stream(request, { signal }) {
      requests.push(request)
      for (;;) {
        const part = await take(signal)
        if (part instanceof Error) throw part
        yield part
        if (part.type === 'finish') return
      }
    },
  }
  return {
    model,
    requests,
    say: (text: string) => put({ type: 'text-delta', text }),
    end: () => put({ type: 'finish', reason: 'stop', usage: USAGE }),
    fail: (error: Error) => put(error),
  }
}

const USAGE = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** What a reader was told, one line each. */
export async function linesOf(fields: AsyncIterable<RunField>): Promise<string[]> {
  const lines: string[] = []
  for await (const { attempt, kind, dot, value, delta } of fields) {
    lines.push(`${attempt} ${kind} ${dot} ${delta ?? JSON.stringify(value)}`)
  }
  return lines
}

export async function doneIn(run: Run, path?: string): Promise<string[]> {
  const lines: string[] = []
  for await (const { dot, value } of path === undefined ? run.fields() : run.fields(path)) {
    lines.push(`${dot}=${JSON.stringify(value)}`)
  }
  return lines
}
