import { tool } from 'legate'
import { decide, readRequest, useLayer } from 'legate/grant'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { trying } from '../support/canary.ts'

/** One way past a shell parser after another. Here a text that is more than words is one word, and no rule for a program fits. */
describe('claude-code 1.0.120, 2.1.6, 2.1.7, 2.1.90, 2.1.98, 2.1.145, 2.1.221, 2.1.223, 2.1.232', () => {
  const hostile = [
    'git status; rm -rf /',
    'git status && rm -rf /',
    'git status | sh',
    'git status\nrm -rf /',
    'git \\\nrm',
    'git $(rm -rf /)',
    'git `rm -rf /`',
    'GIT_SSH=evil git',
    '[[ git ]] && rm',
    'git\0rm',
    ' git',
    'git ',
    'Git',
    './git',
    '/tmp/git',
    'gitx',
  ]

  test.each(hostile)('a rule for git says nothing of %j', (program) => {
    expect(decide([useLayer('me', { use: ['exec:git'] })], readRequest(`exec:${program}`)).verdict).toBe('deny')
  })

  test('what a tool says it starts is decided, whatever the model calls it', async () => {
    const started: string[] = []
    const run = tool({
      description: 'Runs a program.',
      input: { type: 'object' },
      needs: (input) => [`exec:${(input as { program?: string }).program}`],
      execute: (input) => {
        started.push((input as { program: string }).program)
        return 'ran'
      },
    })
    const worker = trying('worker', {
      tools: { run } as never,
      grant: { use: ['tool:*', 'exec:git'], deny: ['exec:rm'] },
      script: ({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? 'done'
          : { calls: ['git', ...hostile, 'rm'].map((program) => ({ name: 'run', input: { program } })) },
    })

    await openRuntime().run(worker, 'go' as never).result

    expect(started).toEqual(['git'])
  })
})
