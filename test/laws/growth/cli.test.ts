import { describe } from 'vitest'
import { localReply, mentionOf } from '../../../src/cli/chat/chat-agent.ts'
import { ChatView } from '../../../src/cli/chat/chat-view.ts'
import { parametersOf } from '../../../src/cli/definition/input.ts'
import { readArgs } from '../../../src/cli/read-args.ts'
import { withDashes } from '../../../src/cli/store/find-run.ts'
import { TypedLine } from '../../../src/cli/terminal/ask-line.ts'
import { cleanText, oneLine } from '../../../src/cli/terminal/clean.ts'
import { jsonLine } from '../../../src/cli/terminal/output.ts'
import { painter } from '../../../src/cli/terminal/paint.ts'
import { cut, pad, widthOf, wrap } from '../../../src/cli/terminal/width.ts'
import { EventLines } from '../../../src/cli/watch/event-lines.ts'
import { isId, matchesId } from '../../../src/core/base/id.ts'
import { nearest } from '../../../src/core/base/options.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks } from './tokens.ts'

const MOST = 1_000_000

/** What can stand in a text that is shown. */
const SHOWN: readonly string[] = [
  ...[
    'a',
    ' ',
    '\n',
    '\r',
    '\r\n',
    '\t',
    '\0',
    '\b',
    '\u001b',
    '\u001b[',
    '\u001b[1m',
    '\u001b[1;',
    '\u001b]0;',
    '\u009b',
    '\u001b]8;;',
  ],
  ...[
    '\u0007',
    '\u202e',
    '\u200d',
    '\u0301',
    'é',
    '漢',
    '😀',
    '👩\u200d👩',
    '🇫',
    '\ud800',
    '\u2028',
    '\ufe0f',
    '가',
    '\u1100',
    ';',
    '1',
  ],
]

describe('texts on a terminal', () => {
  testGrowth('a text', {
    read: (text) => [oneLine(text), cleanText(text), jsonLine(text)],
    tokens: SHOWN,
    most: MOST * 4,
  })
  testGrowth('the width of a text', {
    read: (text) => [widthOf(text), cut(text, 80), cut(text, Number.POSITIVE_INFINITY), pad(text, 20)],
    tokens: SHOWN,
    most: MOST,
  })
  testGrowth('lines of a text', { read: (text) => wrap(text, 80).lines, tokens: SHOWN, most: MOST })
  testGrowth('lines of a text in a file', {
    read: (text) => wrap(text, Number.POSITIVE_INFINITY).lines,
    tokens: SHOWN,
    most: MOST,
  })
  testGrowth('what an agent says', {
    read: (text) => {
      const view = new ChatView({ store: {} } as never, { NO_COLOR: '1' })
      Object.assign(view, { tree: { take() {}, say() {} } })
      for (const delta of inChunks(text, 5)) view.take({ ...EVENT, type: 'text-delta', text: delta } as never, 't')
      view.take({ ...EVENT, type: 'message', role: 'agent', content: text } as never, 't')
    },
    tokens: ['a', '\n', ' ', '😀', 'a\n'],
    most: MOST * 2,
  })
  testGrowth('events of a run', {
    read: (text) => {
      const lines = new EventLines({ paint: painter({}, { NO_COLOR: '1' }), deltas: true })
      for (const delta of inChunks(text, 50)) lines.tell({ ...EVENT, type: 'text-delta', text: delta } as never)
      return lines.tell({ ...EVENT, type: 'message', role: 'agent', content: text, purpose: 'answer' } as never)
    },
    tokens: SHOWN,
    most: MOST,
  })
})

describe('what a person types', () => {
  testGrowth('a message that may mention somebody', {
    read: async (text) => [mentionOf(text), await localReply(text, async () => new Set(['a']))],
    tokens: ['@', 'a', '.', '-', '/', ' ', ',', ':', '\n', 'é', '@a ', './-'],
    most: MOST,
    around: (body) => `@a${body}b`,
  })
  testGrowth('a message', {
    read: async (text) => [mentionOf(text), await localReply(text, async () => new Set(['a']))],
    tokens: ['@', 'a', '.', '-', '/', ' ', ',', ':', '\n', 'é', '@a ', '/help', '/exit '],
    most: MOST,
  })
  testGrowth('arguments', {
    read: (text) => readArgs(['run', ...text.split(' ')], {}),
    tokens: ['a ', '-', '--', '--a ', '--a=', '-a', '--store ', '--param a=b ', '=', '"', '. ', '-h '],
    most: 200_000,
  })
  testGrowth('a command', {
    read: (text) => readArgs([text], {}),
    tokens: ['a', '-', ' ', '=', '.', 'é', 'run'],
    most: 200_000,
  })
  testGrowth('parameters', {
    read: (text) =>
      parametersOf({ values: { param: text.split(' ').map((word, at) => `${word}${at}=${word}`) } } as never),
    tokens: ['a ', '= ', ' ', 'a=', '\n '],
    most: 200_000,
  })
  testGrowth('the ending of an id', {
    read: (text) => [withDashes(text), isId(text), matchesId('0198a1b2-0000-7000-8000-000000000000', text)],
    tokens: ['a', '0', '-', ' ', 'A', 'é', '0198a1b2-0000-7000-8000-000000000000'],
    most: MOST,
  })
  testGrowth('a name that nobody has', {
    read: (text) => inChunks(text, 7).map((word) => nearest(word, ['agent', 'request', 'alias'])),
    tokens: ['a', 'agent', 'request', 'é', ' '],
    most: MOST / 4,
  })
  testGrowth('names that are near', {
    read: (text) => nearest('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', inChunks(text, 39)),
    tokens: ['a', 'b', 'ab', 'é'],
    most: MOST / 4,
  })
  testGrowth('a secret that is typed', {
    read: (text) => {
      const line = new TypedLine(16_384)
      for (const key of text) line.take(key)
    },
    tokens: ['a', '\b', 'é', '😀', '\n', `${'a'.repeat(100)}${'\b'.repeat(100)}`],
    most: MOST / 4,
    around: (body) => `${'a'.repeat(16_000)}${body}`,
  })
})

const EVENT = { at: 0, seq: 1, path: ['a'], runId: 't', nodeId: 'n' }
