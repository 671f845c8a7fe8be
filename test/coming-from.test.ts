import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { AGENT_DIALECTS } from '../src/recipes/dialects/index.ts'

const root = path.resolve(import.meta.dirname, '..')
const page = (name: string) => readFileSync(path.join(root, 'docs/coming-from', `${name}.md`), 'utf8')

describe('a page for people who come from another framework', () => {
  test.each([
    [
      'agentscope',
      'export_agent _pre_context_compress get_input_model observe( response_metadata long-term MsgHub hooks',
    ],
    ['agentscope-java', 'InMemorySession createToolGroup timeout_promoted agent_send'],
    ['goose', 'settings summary images Gemini SessionType summon sub_recipes'],
    ['cybros', 'child_graph_id nested limit_turns runtime_resolver policy_profile context_turns'],
    [
      'agently',
      'must_in_prompt record_input_paths show_tool_logs tool_logs action_results $type ToolExtension use_tool NOTICE',
    ],
  ])('%s has the words of that framework', (name, words) => {
    const text = page(name)
    expect(words.split(' ').filter((word) => !text.includes(word))).toEqual([])
  })

  test('the guide has a row for every dialect of agent files', () => {
    const guide = readFileSync(path.join(root, 'docs/guide/recipe.md'), 'utf8')
    expect(AGENT_DIALECTS.filter(({ name }) => !guide.includes(`\n| \`${name}\` | `)).map(({ name }) => name)).toEqual(
      [],
    )
  })

  test('names every variable of goose and Aster that is read', () => {
    const sources = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    const read = sources
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .flatMap((file) => readFileSync(path.join(root, 'src', file), 'utf8').match(/\b(?:GOOSE|ASTER)_[A-Z_]+/g) ?? [])
      // The marker of a program that goose started, which is set and not read.
      .filter((name) => name !== 'GOOSE_TERMINAL')
    expect(read.length).toBeGreaterThan(8)
    expect([...new Set(read)].filter((name) => !page('goose').includes(`\`${name}\``))).toEqual([])
  })
})
