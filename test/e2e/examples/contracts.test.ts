import { readdirSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type AnyAgent, type agent as define, isAgent } from 'legate'
import { checkSubagentContract } from 'legate/testing'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'

/** Every agent that an example defines while it runs. */
const defined = vi.hoisted((): unknown[] => [])

vi.mock('legate', async (original) => {
  const real = await original<{ agent: typeof define }>()
  const agent = (definition: Parameters<typeof define>[0]) => {
    const made = real.agent(definition)
    defined.push(made)
    return made
  }
  return { ...real, agent }
})

const folder = path.resolve(import.meta.dirname, '../../../examples')
const examples = readdirSync(folder).filter((file) => file.endsWith('.ts'))

describe('every subagent of the examples keeps the contract of one', () => {
  const checked = new Set<string>()

  afterAll(() => {
    expect(checked.size).toBeGreaterThan(5)
  })

  test.each(examples)('%s', async (file) => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    vi.stubEnv('TMPDIR', tempFolder())
    defined.length = 0
    await import(pathToFileURL(path.join(folder, file)).href)
    log.mockRestore()
    vi.unstubAllEnvs()

    for (const subagent of await subagentsOf(defined as AnyAgent[])) {
      await checkSubagentContract(subagent)
      checked.add(`${file} ${subagent.name}`)
    }
  })
})

async function subagentsOf(agents: readonly AnyAgent[]): Promise<AnyAgent[]> {
  const found = new Map<string, AnyAgent>()
  for (const { subagents } of agents) {
    for (const { config } of subagents.values()) {
      const subagent = isAgent(config.agent) ? config.agent : await config.agent()
      found.set(subagent.name, subagent)
    }
  }
  return [...found.values()]
}
