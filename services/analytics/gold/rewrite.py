from dataclasses import dataclass
@dataclass
class Scope:
    top:int; objective:float; week_days:int; report_hours:int; now_ms:int; first:str
def rewrite(spark, output, touched, scope): print("TOUCHED", {str(k):len(v) for k,v in touched.items()})
