import { agent } from 'legate'
import { skillsTools } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { folderWith } from '../recipe/support/folder.ts'
import { asksThenSays } from '../support/agents.ts'
import { openRuntime, toolNamesIn } from '../support/reading.ts'

test('a skill of the host is a tool neither of the host nor of its subagent', async () => {
  const skill = '---\nname: deploy\ndescription: How to deploy.\n---\nPush the button.'
  const cwd = folderWith({ '.claude/skills/deploy/SKILL.md': skill })
  const tools = skillsTools({ cwd, home: folderWith() })
  const childModel = scriptedModel(() => 'ok')
  const child = agent({ name: 'child', instructions: '', model: childModel })
  const model = scriptedModel(asksThenSays('done'))
  await openRuntime().run(agent({ name: 'host', instructions: '', model, tools, subagents: { ask: child } }), 'go')
    .result

  expect(await tools.skills_list.execute({}, {} as never)).toBe('deploy - How to deploy.')
  expect(toolNamesIn(model.requests[0]).sort()).toEqual(['ask', 'skills_list', 'skills_load', 'skills_read'])
  expect(toolNamesIn(childModel.requests[0])).toEqual([])
  expect(JSON.stringify(childModel.requests)).not.toMatch(/deploy|button/)
})
