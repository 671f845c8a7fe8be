import { diskFiles } from 'legate/tools'

/** Writes and edits one file of the workspace it is given, without end. */
const files = diskFiles({ workspace: process.argv[2] ?? '' }).open({ use: ['file.*:/workspace/**'] })

for (let letter = 'a'; ; letter = letter === 'a' ? 'b' : 'a') {
  await files.write('/workspace/file', `<${letter.repeat(500_000)}>`)
  if (letter === 'a') process.stdout.write('.')
  await files.edit('/workspace/file', [{ oldText: letter, newText: letter.toUpperCase(), replaceAll: true }])
}
