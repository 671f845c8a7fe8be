import { beforeEach, describe, expect, test } from 'vitest'
import { skipUnlessBuilt } from '../../cli/support/cli.ts'
import { skipWithoutCorpus } from '../../recipe/support/corpus.ts'
import { type Definition, recipes } from './support/definition.ts'
import { expectationOf } from './support/expectation.ts'
import { LIMIT, play, workplace } from './support/play.ts'
import { Provider } from './support/provider.ts'
import { shareOf } from './support/share.ts'
import { commandFor, tryOut } from './support/try-out.ts'

beforeEach(skipUnlessBuilt)
beforeEach(skipWithoutCorpus)

const all = recipes()
/** An optional parameter without a default: its own program refuses it too. */
const wrong = all.filter(({ name }) => name === 'recipes/pull-request-generator.yaml')
const right = all.filter((one) => !wrong.includes(one))

describe.skipIf(all.length === 0)('a recipe that is run', LIMIT, () => {
  test.each(shareOf(right, kindOf))(
    '%s %s: its tools, servers and sub-recipes work, others are refused',
    async (_name, mode, definition) => {
      await tryOut(definition, mode)
    },
  )

  test.each(shareOf(wrong, kindOf))('%s %s: says what is wrong with it, and where', async (_name, mode, definition) => {
    const place = workplace()
    const provider = new Provider({ steps: [], output: null })
    Object.assign(place.more, await provider.start())

    const yes = mode.endsWith('--yes') ? ['--yes'] : []
    const { code, printed } = await play(mode, place, commandFor(definition, expectationOf(definition), yes))

    expect(code).toBe(2)
    const said =
      'recipes/pull-request-generator.yaml:19: Optional parameters missing default values in the recipe: push_pr. Please provide defaults.'
    expect(printed.replaceAll(/\s/g, '')).toContain(said.replaceAll(' ', ''))
    expect(provider.requests).toEqual([])
  })
})

function kindOf({ said: { extensions = [], sub_recipes = [], response, parameters = [] } }: Definition): string {
  const servers = extensions.filter(({ type }) => type === 'stdio').length
  if (servers > 0) return `${servers} servers`
  if (sub_recipes.length > 0) return 'sub-recipes'
  if (response !== undefined) return 'output'
  if (extensions.some(({ name }) => name === 'memory')) return 'memory'
  return parameters.length > 0 ? 'parameters' : 'plain'
}
