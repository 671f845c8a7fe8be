import { parseAgentFile } from '../../src/recipe/agent-file/load-agent-file.ts'
import { mentionedIn } from '../../src/recipe/discovery/discover.ts'
import { readImages } from '../../src/recipe/open/images.ts'
import { testGrowth } from '../support/growth.ts'
import { YAML } from './tokens.ts'

const MOST = 500_000
const read = (text: string) => parseAgentFile(text, '/nowhere/agents/a.md')

testGrowth('the front matter of an agent file', {
  read,
  tokens: [...YAML, 'a: b: c\n', '---'],
  most: MOST,
  around: (body) => `---\n${body}\n---\nx`,
})
testGrowth('the tools of an agent file', {
  read,
  tokens: ['Bash', '(', ')', '(git *)', ' ', ',', ', ', '*', 'mcp__a__b', '_', '"', '[', ']', ':*', '/'],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b\ntools: ${JSON.stringify(`a${body}(x`)}\n---\nx`,
})
testGrowth('a value of front matter', {
  read,
  tokens: [' ', 'a', ':', '#', '\t', '"'],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b: ${body}c\n---\nx`,
})
testGrowth('what a message mentions', {
  read: (text) => mentionedIn(text, []),
  tokens: ['@', '@a', '/', '.', '-', '@a/', ' ', 'é'],
  most: 1_000_000,
  around: (body) => `@a${body}x`,
})
testGrowth('an image of a call', {
  read: (text) => readImages([{ data: text, mime_type: 'image/png' }]),
  tokens: [' ', '\n', 'a', '=', 'a ', '= '],
  most: 16_000_000,
  around: (body) => `${body}!`,
})
