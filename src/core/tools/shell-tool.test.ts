import { describe, expect, test } from 'vitest'
import { commandWords } from './shell-tool.ts'

describe('a command that is nothing but words', () => {
  test.each<[string, string[]]>([
    ['git status', ['git', 'status']],
    ['  npm   run test  ', ['npm', 'run', 'test']],
    [`git commit -m "a message" -m 'two words'`, ['git', 'commit', '-m', 'a message', '-m', 'two words']],
    [`grep -r --include='*.ts' "x y" src`, ['grep', '-r', '--include=*.ts', 'x y', 'src']],
    [`echo ''`, ['echo', '']],
    ['/usr/bin/env', ['/usr/bin/env']],
  ])('%s', (command, words) => {
    expect(commandWords(command)).toEqual(words)
  })
})

describe('a command that needs a shell', () => {
  test.each([
    'git status; rm -rf /',
    'git status && rm x',
    'git status\nrm x',
    'git status | sh',
    'git log > x',
    'git $(rm x)',
    'git `rm x`',
    'git "$(rm x)"',
    'git "`rm x`"',
    'ls *.ts',
    'ls ~',
    'ls {a,b}',
    'X=1 git status',
    'git status &',
    'git # comment',
    'cd src',
    'eval ls',
    'if true',
    'echo "a\\" b"',
    "echo 'open",
    'git\\ status',
    'git\u00a0status',
    '',
    '   ',
  ])('%j', (command) => {
    expect(commandWords(command)).toBeUndefined()
  })
})
