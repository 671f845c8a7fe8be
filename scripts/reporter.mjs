import { writeFileSync } from 'node:fs'
import path from 'node:path'

/** Writes `{ passed, failed, skipped: [{ project, file, test, reason }] }` to the file named by LEGATE_REPORT. */
export default class Reporter {
  onTestRunEnd(modules, unhandledErrors) {
    const target = process.env.LEGATE_REPORT
    if (!target) return
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const broken = modules
      .flatMap((module) => [module, ...module.children.allSuites()])
      .flatMap((part) => part.errors())
    const report = {
      passed: tests.filter((test) => test.result().state === 'passed').length,
      failed: tests.filter((test) => test.result().state === 'failed').length + broken.length + unhandledErrors.length,
      skipped: tests.filter((test) => test.result().state === 'skipped').map(describeSkip),
    }
    writeFileSync(target, JSON.stringify(report))
  }
}

function describeSkip(test) {
  return {
    project: test.project.name,
    file: path.relative(process.cwd(), test.module.moduleId),
    test: test.fullName,
    reason: test.result().note ?? (test.options.mode === 'todo' ? 'not written yet' : 'no reason given'),
  }
}
