/* The part of HiGHS's C interface that loopegg uses, as its library (1.15) exports it: the PyPI wheel ships no header. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

typedef int HighsInt; /* the wheel is built with 32-bit indices */

enum { kHighsStatusError = -1, kHighsStatusOk = 0, kHighsStatusWarning = 1 };
enum { kHighsVarTypeContinuous = 0, kHighsVarTypeInteger = 1 };
enum { kHighsObjSenseMinimize = 1, kHighsObjSenseMaximize = -1 };
enum { kHighsSolutionStatusNone = 0, kHighsSolutionStatusInfeasible = 1, kHighsSolutionStatusFeasible = 2 };
enum { kHighsMatrixFormatColwise = 1, kHighsMatrixFormatRowwise = 2 };
enum {
    kHighsModelStatusOptimal = 7,
    kHighsModelStatusInfeasible = 8,
    kHighsModelStatusUnboundedOrInfeasible = 9,
    kHighsModelStatusUnbounded = 10,
    kHighsModelStatusTimeLimit = 13,
    kHighsModelStatusIterationLimit = 14,
    kHighsModelStatusSolutionLimit = 16,
    kHighsModelStatusInterrupt = 17
};

const char* Highs_version(void);
void* Highs_create(void);
void Highs_destroy(void* highs);
double Highs_getInfinity(const void* highs);

HighsInt Highs_setBoolOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setIntOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setDoubleOptionValue(void* highs, const char* option, double value);
HighsInt Highs_setStringOptionValue(void* highs, const char* option, const char* value);

HighsInt Highs_passMip(void* highs, HighsInt num_col, HighsInt num_row, HighsInt num_nz, HighsInt a_format, HighsInt sense, double offset,
                       const double* col_cost, const double* col_lower, const double* col_upper, const double* row_lower, const double* row_upper,
                       const HighsInt* a_start, const HighsInt* a_index, const double* a_value, const HighsInt* integrality);
HighsInt Highs_addRow(void* highs, double lower, double upper, HighsInt num_nz, const HighsInt* index, const double* value);
HighsInt Highs_addCol(void* highs, double cost, double lower, double upper, HighsInt num_nz, const HighsInt* index, const double* value);
HighsInt Highs_changeColIntegrality(void* highs, HighsInt col, HighsInt integrality);
HighsInt Highs_changeColBounds(void* highs, HighsInt col, double lower, double upper);
HighsInt Highs_changeColCost(void* highs, HighsInt col, double cost);
HighsInt Highs_changeRowBounds(void* highs, HighsInt row, double lower, double upper);

/* A start for the search; null for what is not known. */
HighsInt Highs_setSolution(void* highs, const double* col_value, const double* row_value, const double* col_dual, const double* row_dual);
HighsInt Highs_zeroAllClocks(const void* highs); /* time_limit counts from here */
HighsInt Highs_run(void* highs);
HighsInt Highs_getModelStatus(const void* highs);
HighsInt Highs_getSolution(const void* highs, double* col_value, double* col_dual, double* row_value, double* row_dual);
double Highs_getObjectiveValue(const void* highs);
HighsInt Highs_getDoubleInfoValue(const void* highs, const char* info, double* value); /* "mip_dual_bound", "mip_gap" */
HighsInt Highs_getIntInfoValue(const void* highs, const char* info, HighsInt* value);  /* "primal_solution_status" */

#ifdef __cplusplus
}
#endif
