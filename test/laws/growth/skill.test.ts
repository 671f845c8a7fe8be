import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { discoverSkills, type Skill, skillInstructions } from '../../../src/recipes/discovery/skills.ts'
import { testGrowth } from '../../support/growth.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const MOST = 500_000
const SKILL: Skill = {
  name: 'a',
  description: '',
  instructions: '',
  file: '/a/SKILL.md',
  files: [],
  arguments: ['a', 'b'],
}
const folder = tempFolder(afterAll)
const file = path.join(folder, '.legate/skills/a/SKILL.md')
mkdirSync(path.dirname(file), { recursive: true })

testGrowth('the file of a skill', {
  read: (text) => {
    writeFileSync(file, text)
    return discoverSkills({ cwd: folder, home: '/nowhere' })
  },
  tokens: ['a ', 'a, ', '- a\n', '[a, ', '"', '\n', '---\n', '$ARGUMENTS', '$a '],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b\narguments: ${body}\n---\n${body}`,
})
testGrowth('the instructions of a skill', {
  read: (instructions) => skillInstructions({ ...SKILL, instructions }, 'x "y z"'),
  tokens: ['$ARGUMENTS', '$ARGUMENTS[', '$ARGUMENTS[0]', '$1', '$', '$a', '$b ', '$c', 'a', ' ', '$ARGUMENT', '\n'],
  most: MOST,
})
testGrowth('names of the arguments of a skill', {
  read: (text) => skillInstructions({ ...SKILL, instructions: text, arguments: text.split('$') }, 'x'),
  tokens: ['$a', '$b1', '$c_', '$d ', 'e'],
  most: MOST,
})
testGrowth('what is given to a skill', {
  read: (text) => skillInstructions({ ...SKILL, instructions: '$ARGUMENTS $1' }, text),
  tokens: ['a', ' ', '"', "'", '"a" ', '\n', '\\', '\'" '],
  most: 4_000_000,
})

test('a skill cannot make much of what is given to it', () => {
  const instructions = '$ARGUMENTS '.repeat(40_000)

  expect(skillInstructions({ ...SKILL, instructions }, 'x'.repeat(50))).toHaveLength(51 * 40_000)
  expect(() => skillInstructions({ ...SKILL, instructions }, 'x'.repeat(1_000))).toThrow(/more than 4000000 characters/)
})
