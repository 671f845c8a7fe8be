import { beforeEach, describe, expect, test } from 'vitest'
import { skipUnlessBuilt } from '../../cli/support/cli.ts'
import { skipWithoutCorpus } from '../../recipe/support/corpus.ts'
import { agentFiles, type Definition } from './support/definition.ts'
import { expectationOf } from './support/expectation.ts'
import { LIMIT, workplace } from './support/play.ts'
import { Provider } from './support/provider.ts'
import { shareOf } from './support/share.ts'
import { commandFor, tryOut } from './support/try-out.ts'

beforeEach(skipUnlessBuilt)
beforeEach(skipWithoutCorpus)

const all = agentFiles()

test('there are files of every program, and one with limits in brackets', () => {
  expect(new Set(all.map(({ dialect }) => dialect)).size).toBe(7)
  expect(all.filter(({ said }) => /Bash\(\w+:\*\)/.test(String(said.tools)))).not.toEqual([])
})

describe.skipIf(all.length === 0)('an agent file that is run', LIMIT, () => {
  const share = shareOf(all, ({ dialect, said }) =>
    String(said.tools).includes('(') ? `${dialect} with limits` : dialect,
  )
  const nameless = all.filter((one) => modelOf(one).id === null)

  test.each(share)('%s %s: tools that it names work, others are refused', async (_name, mode, definition) => {
    const { id } = modelOf(definition)
    const requests = await tryOut(definition, mode, id === null ? ['--model', 'openai/gpt-5'] : [])

    expect(new Set(requests.map(({ model }) => model))).toEqual(new Set([expect.stringMatching(id ?? /^gpt-5$/)]))
  })

  test.each(nameless.map((one) => [one.name, one] as const))(
    '%s: names what its model lacks, and asks nobody else',
    async (_name, definition) => {
      const place = workplace()
      const provider = new Provider({ steps: [], output: null })
      Object.assign(place.more, await provider.start())

      const { code, stdout, stderr } = await place.run(commandFor(definition, expectationOf(definition), ['--yes']))

      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      for (const word of modelOf(definition).said) expect(stderr).toContain(word)
      expect(provider.requests).toEqual([])
    },
  )
})

interface NamedModel {
  /** As the provider gets it; null where nothing here can be it. */
  readonly id: RegExp | null
  /** What the message names then. */
  readonly said: readonly string[]
}

/** The model that somebody who wrote this means. */
function modelOf({ said: { model = 'inherit', provider } }: Definition): NamedModel {
  if (provider !== undefined) return { id: null, said: [provider, '--model'] }
  if (model === 'inherit') return { id: /^gpt-5$/, said: [] }
  if (model === 'Claude Sonnet 4.5 (copilot)') return { id: /^claude-sonnet-4-5$/, said: [] }
  if (/^(?:sonnet|opus|haiku)$/.test(model)) return { id: new RegExp(`^claude-${model}-`), said: [] }
  if (model.startsWith('gpt-')) return { id: new RegExp(`^${model}$`), said: [] }
  return { id: null, said: [model.split('/')[0] ?? '', '--model'] }
}
