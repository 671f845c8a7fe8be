/** Without the indentation that all lines share and without space around it: texts are often indented like the code. */
export function cleanText(text: string): string {
  if (!text.includes('\n')) return text.trim()
  const lines = text.split('\n')
  const shared = sharedIndent(lines)
  return lines
    .map((line) => (line.trim() === '' ? '' : line.slice(shared)))
    .join('\n')
    .trim()
}

/** How many of the first characters are the same blanks in every line that says something. */
function sharedIndent(lines: readonly string[]): number {
  let shared: string | undefined
  for (const line of lines) {
    if (line.trim() === '') continue
    const indent = indentOf(line)
    shared = shared === undefined ? indent : commonStart(shared, indent)
    if (shared === '') return 0
  }
  return shared?.length ?? 0
}

function indentOf(line: string): string {
  let end = 0
  while (line[end] === ' ' || line[end] === '\t') end++
  return line.slice(0, end)
}

function commonStart(a: string, b: string): string {
  let end = 0
  while (end < a.length && a[end] === b[end]) end++
  return a.slice(0, end)
}
