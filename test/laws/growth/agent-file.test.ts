import { parseAgentFile } from '../../../src/recipes/dialects/load-agent-file.ts'
import { mentionedIn } from '../../../src/recipes/discovery/discover.ts'
import { readImages } from '../../../src/recipes/open/arguments.ts'
import { testGrowth } from '../../support/growth.ts'
import { YAML } from './tokens.ts'

const MOST = 500_000
const read = (text: string) => parseAgentFile(text, '/nowhere/agents/a.md')
const readToml = (text: string) => parseAgentFile(text, '/nowhere/.codex/agents/a.toml')

/** Lines that differ. */
function numbered(body: string): string {
  return body
    .split('\n')
    .map((line, at) => line.replace(/\w(?=\W*$)|a/, (found) => `${found}${at}`))
    .join('\n')
}

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
testGrowth('the words of a list of tools', {
  read,
  tokens: ['x,', 'Read,', 'Bash_Write,', 'x y,', 'Bash(a),', 'Agent(a),'],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b\ntools: "${body}"\ndisallowedTools: "${body}"\n---\nx`,
})
testGrowth('different words in a list of tools', {
  read,
  tokens: ['a,', 'a ', 'Bash(a),', 'mcp__a,', 'Reada,'],
  most: MOST / 4,
  around: (body) => {
    const list = body.replaceAll('a', (found, at) => `${found}${at}`)
    return `---\nname: a\ndescription: b\ntools: "${list}"\ndisallowedTools: "Bash(${list})"\n---\nx`
  },
})
testGrowth('a value of front matter', {
  read,
  tokens: [' ', 'a', ':', '#', '\t', '"'],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b: ${body}c\n---\nx`,
})
testGrowth('lists of tools', {
  read,
  tokens: [
    '- Task\n',
    '- Agent(a)\n',
    '- Read\n',
    '- mcp__a__b\n',
    '- x\n',
    '- Bash(a *)\n',
    '- Write(/a/**)\n',
    '- WebFetch(domain:a)\n',
  ],
  most: MOST,
  around: (body) => {
    const list = numbered(body)
    return `---\nname: a\ndescription: b\ntools:\n${list}\ndisallowedTools:\n${list}\n---\nx`
  },
})
testGrowth('the name of a tool', {
  read,
  tokens: ['mcp__', '__', '_', '\\n', 'a', '/', '*', 'a__', '(', ')', '.', ' '],
  most: MOST,
  around: (body) => `---\nname: a\ndescription: b\ntools:\n- "mcp__${body}b"\n- "${body}\\nb"\n---\nx`,
})
testGrowth('permissions', {
  read: (text) => parseAgentFile(text, '/nowhere/.opencode/agents/a.md'),
  tokens: ['  a *: deny\n', '  a *: allow\n', '  a*b: ask\n', '  "*": deny\n', '  /a/**: deny\n'],
  most: MOST,
  around: (body) => {
    const rules = body
      .split('\n')
      .map((line, at) => line.replace('a', `a${at}`).replace(/^/, '  '))
      .join('\n')
    return `---\ndescription: b\nmode: subagent\npermission:\n  bash:\n${rules}\n  edit:\n${rules}\n---\nx`
  },
})
testGrowth('a grant in an agent file', {
  read,
  tokens: ['"tool:a", ', '"file.read:/a/**", ', '"exec:a *", ', '"net:a", ', '"file.read:/**/**/**", ', '"agent:*", '],
  most: MOST,
  around: (body) => {
    const rules = body
      .split(', ')
      .slice(0, -1)
      .map((rule, at) => rule.replace('a', `a${at}`))
      .join(', ')
    return `---\nname: a\ndescription: b\ndisallowedTools: [Bash(x *), Read(/a/**)]\ngrant: { use: [${rules}], ask: [${rules}] }\n---\nx`
  },
})
testGrowth('an agent file in TOML', {
  read: readToml,
  tokens: [
    ...[
      'a',
      'a = 1\n',
      'a.',
      'a.b = 1\n',
      '[a]\n',
      '[[a]]\n',
      '[a.b]\n',
      '"',
      "'",
      '"""',
      "'''",
      '=',
      '[',
      ']',
      '{',
      '}',
      ',',
      '#',
      '\n',
    ],
    ...[
      '1',
      '-',
      '_',
      '.',
      'e',
      '1979-05-27',
      'T07:32:00Z',
      '\\',
      '\\u',
      'true',
      ' ',
      '\t',
      '\r\n',
      'é',
      '[1, ',
      '{a = ',
      'inf',
      '0x',
    ],
  ],
  most: MOST,
})
testGrowth('a value in TOML', {
  read: readToml,
  tokens: ['a', '"', "'", '\\', '\n', ' ', '\\n', '\\u00e9', '""', "''", '1', '_', '[', '{a=', ',', '\\\n', '#'],
  most: MOST,
  around: (body) => `name = "a"\ndescription = """${body}`,
})
testGrowth('keys in TOML', {
  read: (text) => readToml(`name = "a"\ndescription = "b"\n${numbered(text)}`),
  tokens: [
    'a = 1\n',
    'a.b = "c"\n',
    '[a.b]\n',
    '[[b.a]]\n',
    '"a" = {}\n',
    '[mcp_servers.a]\ncommand = "b"\n',
    'a = [1]\n',
  ],
  most: MOST,
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
