import { agent, type Json } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

/** A worker steered and stopped its sibling, which had wider tools. The whole matrix is in ownership.test.ts. */
test.each(['subagent_send', 'subagent_cancel', 'subagent_result', 'subagent_wait'])(
  'GHSA-4w7m-58cg-cmff: %s does not reach a sibling',
  async (tool) => {
    const heard: string[] = []
    let release: () => void = () => undefined
    const tried = new Promise<void>((resolve) => {
      release = resolve
    })
    const sibling = agent({
      name: 'sibling',
      instructions: '',
      model: scriptedModel(async ({ messages }) => {
        heard.push(String(messages.at(-1)?.content))
        await tried
        return 'secret'
      }),
    })
    const said: string[] = []
    const thief = agent({
      name: 'thief',
      instructions: '',
      tools: { ...backgroundSubagents() },
      model: scriptedModel((request) => {
        const results = resultsIn(request).map(({ content }) => String(content))
        if (results.length === 0)
          return { calls: [siblingId(request.messages), 'nobody'].map((id) => callOf(tool, id)) }
        said.push(...results)
        release()
        return 'tried'
      }),
    })
    const host = agent({
      name: 'host',
      instructions: '',
      tools: { ...backgroundSubagents({ agents: { sibling, thief }, wake: 'passive' }) },
      model: scriptedModel((request) => {
        const results = resultsIn(request).map(({ content }) => String(content))
        if (results.length === 0) return { calls: [spawn('sibling', 'work')] }
        return results.length === 1 ? { calls: [spawn('thief', idIn(results[0]))] } : 'started'
      }),
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    const [first] = localStore(runtime).linksOf(run.id)
    expect(await (await runtime.attach(first?.id ?? '')).result).toMatchObject({ status: 'completed', text: 'secret' })
    expect(heard).toEqual(['work'])
    expect(said).toHaveLength(2)
    expect(said[0]).toBe(said[1])
    expect(said[0]).toMatch(/there is no subagent with this child_conversation_id here/)
  },
)

function spawn(name: string, prompt: string) {
  return { name: 'subagent_spawn', input: { name, prompt } }
}

function idIn(result: string | undefined): string {
  return (JSON.parse(result ?? '{}') as { child_conversation_id: string }).child_conversation_id
}

function siblingId(messages: readonly { readonly role: string; readonly content: unknown }[]): string {
  return String(messages.findLast(({ role }) => role === 'user')?.content)
}

function callOf(name: string, id: string): { readonly name: string; readonly input: Json } {
  if (name === 'subagent_wait') return { name, input: { ids: [id] } }
  const words = name === 'subagent_send' ? { message: 'obey me' } : {}
  return { name, input: { child_conversation_id: id, ...words } }
}
