/** Of templates. */
export const TEMPLATE: readonly string[] = [
  ...['{', '}', '{{', '}}', '{%', '%}', '{#', '#}', '"', "'", '\\', '(', ')', '[', ']', ' ', '\n', '-', 'a', '|', '*'],
  ...['.', ',', '~', '1', '{{"', '{{ (', '{{ a }}', '{{ a.b }}', '{{ m() }}', '{{ a b }}', '{{ {}} ', '{{a.b', 'a.'],
  ...['{% a ', '{% if a %}', '{% endif %}', '{% raw %}', '{% endraw %}', '{% for x in y %}', '{% endfor %}'],
  ...['{% set x %}', '{% set a = 1 %}', '{% macro m() %}', '{% include "a" %}', '{% filter upper %}', '{% with a=1 %}'],
]

/** Of YAML, and so of most files. */
export const YAML: readonly string[] = [
  ...['a', 'a:', 'a: ', 'a: b\n', 'a:a:', '- ', '- a\n', '-\n', '\n', ' ', '\t', '? ', ':', ': ', '{', '}', '[', ']'],
  ...[
    ',',
    '[a, ',
    '{a: ',
    '"',
    "'",
    '|',
    '>',
    '|\n',
    '#',
    '# c\n',
    '&a ',
    '*a ',
    '!t ',
    '!!str ',
    '%',
    '---\n',
    '...\n',
  ],
  ...['\\', '"a" ', "''", '\r', '\r\n', 'é', '😀', '<<: ', 'x: |\n  a\n', '@', '`', '0', '1e', '~', '  ', '  - '],
]

export const JSON_TOKENS: readonly string[] = [
  ...['{', '}', '[', ']', ',', ':', '"', "'", '\\', '\\"', '\\u', '\\ud800', '\u{d800}', '\ufeff', '//', '/*', '*/'],
  ...['\n', ' ', 'a', '1', '-', '.', 'e', 'true', 'null', '"a":1,', '{"a":', '[1,', '1e999,', '```json\n', '<think>'],
]

/** The text in pieces of so many characters, as a stream brings it. */
export function inChunks(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))
}
