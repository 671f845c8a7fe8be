import path from 'node:path'
import { createRuntime } from 'legate'
import { recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { diskFiles } from 'legate/tools'
import { beforeEach, describe, expect, test } from 'vitest'
import { corpus, skipWithoutCorpus } from '../support/corpus.ts'
import { folderWith } from '../support/folder.ts'
import { calling, childRequests, lastResult, resultsIn, shownTool, userOf } from './support.ts'

const recipes = path.join(corpus, 'goose/documentation/src/pages/recipes/data/recipes')
const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

describe('recipes of other people, end to end on a scripted model', () => {
  beforeEach(skipWithoutCorpus)

  test('project_analyzer_parallel: both children are at work at the same time, with real programs, and write their files', async () => {
    const cwd = folderWith({ 'src/a.ts': 'export const a = 1\n' })
    const inside = new Set<string>()
    let most = 0
    let open: () => void = () => undefined
    const both = new Promise<void>((resolve) => {
      open = resolve
    })
    const model = scriptedModel(async (request) => {
      if (request.path.length === 1) {
        const results = resultsIn(request)
        if (results.length > 0) return `Both done:\n${results.join('\n')}`
        return {
          calls: ['file_stats', 'code_patterns'].map((subrecipe) => ({ name: 'subagent', input: { subrecipe } })),
        }
      }
      const who = request.path[1] ?? ''
      if (lastResult(request) !== undefined) return `${who}: ${lastResult(request)}`
      inside.add(who)
      most = Math.max(most, inside.size)
      if (inside.size === 2) open()
      await both
      return calling('shell', { command: `echo '{"by":"${who}"}' > ${who}.json && cat ${who}.json` })
    })
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: cwd }) })
    const file = path.join(corpus, 'goose/scripts/test-subrecipes-examples/project_analyzer_parallel.yaml')
    const analyzer = await recipeAgent(file, {
      cwd,
      grant: { use: EVERYTHING },
      parameters: { target_directory: 'src' },
    })
    const run = runtime.run(analyzer)
    const { status, text, children } = await run.result

    expect({ status, children, most }).toEqual({ status: 'completed', children: 2, most: 2 })
    expect(text).toContain('file_stats: {"by":"file_stats"}')
    expect(text).toContain('code_patterns: {"by":"code_patterns"}')
    const shown = shownTool(model, 'subagent')?.description
    expect(shown).toContain('Available subrecipes:\n• file_stats - ')
    expect(shown).not.toContain('(params')
    // The recipe speaks of delegates: it has the tools of that name too.
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['delegate', 'load', 'shell']),
    )
    const asked = childRequests(model).map((request) => String(userOf(request)))
    expect(asked.some((text) => text.includes('Write file_stats.json with a single shell command'))).toBe(true)
  })

  test.each([
    ['technical-debt-tracker.yaml', 5],
    ['rpi-research.yaml', 3],
  ])('%s and its %i sub-recipes, each with its values in place', async (name, count) => {
    const cwd = folderWith()
    const names: string[] = []
    const model = scriptedModel((request) => {
      if (request.path.length > 1) {
        names.push(request.path[1] ?? '')
        return `done ${request.path[1]}`
      }
      if (resultsIn(request).length > 0) return resultsIn(request).join('\n')
      const listed = request.tools.find(({ name: one }) => one === 'subagent')?.description ?? ''
      const subs = [...listed.matchAll(/^• (\S+).*?(?:\(params: (.*)\))?$/gm)]
      return {
        calls: subs.map(([, subrecipe = '', params = '']) => ({
          name: 'subagent',
          input: {
            subrecipe,
            parameters: Object.fromEntries(
              params
                .split(', ')
                .filter(Boolean)
                .map((one) => [one.split(' ')[0], 'VALUE']),
            ),
          },
        })),
      }
    })
    await using runtime = createRuntime({ model, files: diskFiles({ workspace: cwd }) })
    const file = path.join(recipes, name)
    const { describeRecipe } = await import('legate/recipe')
    const { missing } = await describeRecipe(file)
    const parameters = Object.fromEntries(missing.map((key) => [key, `THE_${key}`]))
    const { status, text, children } = await runtime.run(await recipeAgent(file, { cwd, parameters })).result

    expect(status, text).toBe('completed')
    expect(children).toBe(count)
    expect(new Set(names).size).toBe(count)
    expect(
      childRequests(model)
        .map((request) => JSON.stringify(request.messages))
        .join(''),
    ).not.toMatch(/\{\{ *\w+ *\}\}/)
  })
})
